/** Pairs of GGUF files, a language model and its image encoder: scripts/fixtures/models/mmproj.py. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { add, contiguous, io, reshape, type Tensor, transpose } from "../../../../src/index.ts";
import type { Case } from "./oracle.ts";
import { promptTokenizer } from "./tiny.ts";

type Value = string | number | boolean | readonly (string | number | boolean)[];

/** Metadata of the tokenizer and the chat template. */
export function promptMetadata(template: string): Contents["metadata"] {
  const { model, added_tokens } = promptTokenizer;
  const tokens = Object.keys(model.vocab).sort((a, b) => model.vocab[a] - model.vocab[b]);
  return {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.chat_template": template,
    "tokenizer.ggml.tokens": [...tokens, ...added_tokens.map(({ content }) => content)],
    "tokenizer.ggml.token_type": [...tokens.map(() => 1), ...added_tokens.map(() => 3)],
  };
}

/** Describes how a checkpoint's tensor is converted to a tensor of the file. */
interface Made {
  readonly from: string;
  readonly rows?: readonly [first: number, count: number];
  readonly frame?: 0 | 1;
  /** The number of heads whose rows llama.cpp reorders. */
  readonly heads?: number;
  readonly plus?: number;
}

interface Contents {
  readonly metadata: Readonly<Record<string, Value>>;
  readonly tensors: Readonly<Record<string, Made>>;
}

export interface MmprojCase extends Case {
  readonly text: Contents;
  readonly tower: Contents;
}

const file = join(packageRoot, "test", "fixtures", "vision_language", "mmproj.json");
export const mmprojCases: Readonly<Record<string, readonly MmprojCase[]>> = JSON.parse(readFileSync(file, "utf8"));

/**
 * Writes `text.gguf` and `mmproj.gguf` next to the safetensors of a model. @param more metadata of the language model
 * @returns their paths
 */
export async function writePair(
  folder: string,
  { text, tower }: MmprojCase,
  more: Contents["metadata"] = {},
): Promise<{ readonly path: string; readonly mmproj: string }> {
  const state = io.loadSafetensors(join(folder, "model.safetensors"));
  const write = async (name: string, { metadata, tensors }: Contents): Promise<string> => {
    const made = Object.entries(tensors).map(([key, own]) => [key, tensorOf(state[own.from], own)] as const);
    await io.saveGguf(join(folder, name), Object.fromEntries(made), { metadata });
    return join(folder, name);
  };
  const path = await write("text.gguf", { ...text, metadata: { ...text.metadata, ...more } });
  return { path, mmproj: await write("mmproj.gguf", tower) };
}

function tensorOf(x: Tensor, { rows, frame, heads, plus }: Made): Tensor {
  if (rows) return contiguous(x.narrow(0, ...rows));
  if (frame !== undefined) return contiguous(x.select(2, frame));
  if (plus !== undefined) return add(x, plus);
  if (heads === undefined) return x;
  const [outputs, inputs] = x.shape;
  const halves = reshape(x, [heads, 2, outputs / heads / 2, inputs]);
  return contiguous(reshape(transpose(halves, 1, 2), [outputs, inputs]));
}
