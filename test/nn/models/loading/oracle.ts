/** Small models of `transformers` and its results for them: scripts/fixtures/models/decoders.py. */
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, type nn, noGrad, type Tensor, tensor } from "../../../../src/index.ts";
import { hashed } from "../weights.ts";

export { errorOf } from "../weights.ts";

export const decoders = [
  "gpt2",
  "llama",
  "mistral",
  "qwen2",
  "qwen3",
  "gemma2",
  "gemma3",
  "phi3",
  "olmo2",
  "mixtral",
  "qwen3_moe",
] as const;

export const folderOf = (name: string): string => join(packageRoot, "test", "fixtures", "decoders", name);
export const answersOf = (name: string): nn.StateDict =>
  io.loadSafetensors(join(folderOf(name), "answers.safetensors"));

export const numbers = (x: Tensor): number[] => Array.from(x.dataSync(), Number);

/** Writes a checkpoint of hashed weights. Norms' weights get 1 added, unless they are stored relative to 1. */
export async function writeHashed(
  path: string,
  shapes: Readonly<Record<string, readonly number[] | null>>,
  isFromOne: boolean,
  prefix = "",
): Promise<void> {
  const tensors = Object.entries(shapes).flatMap(([name, shape]) => {
    if (shape === null) return [];
    const offset = shape.length === 1 && name.endsWith("weight") && !isFromOne ? 1 : 0;
    return [[name, hashed(prefix + name, shape, offset)] as const];
  });
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
}

const largest = (row: readonly number[]): number => row.indexOf(Math.max(...row));

/** The tokens that follow each row of a batch, the most likely ones. */
export function greedy(
  model: nn.LanguageModel,
  prompt: Tensor,
  count: number,
  options: { readonly padding?: readonly number[]; readonly useCache: boolean },
): number[][] {
  const { padding, useCache } = options;
  using cache = model.newCache();
  const [batch] = prompt.shape;
  const rows = Array.from({ length: batch }, (_, row) => numbers(prompt.narrow(0, row, 1)));
  const found = rows.map((): number[] => []);
  let input = prompt;
  for (let step = 0; step < count; step++) {
    const inputs = { padding, lastOnly: true, ...(useCache && { cache }) };
    const logits = numbers(noGrad(() => model.forward(input, inputs)));
    for (const [row, own] of found.entries())
      own.push(largest(logits.slice(row * model.vocabularySize, (row + 1) * model.vocabularySize)));
    const texts = found.map((own, row) => (useCache ? own.slice(-1) : [...rows[row], ...own]));
    input = tensor(texts, { dtype: "int32" });
  }
  return found;
}
