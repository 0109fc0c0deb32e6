/** A small BERT with each head, and the tokenizer of test/fixtures/text: scripts/fixtures/models/pipelines.py. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { io, mul, nn, type Tensor } from "../../../src/index.ts";
import { type Shapes, weight } from "../models/encoder/oracle.ts";

interface Model {
  readonly config: Readonly<Record<string, unknown>>;
  readonly shapes: Shapes;
}
type Scored = { readonly label: string; readonly score: number };
type Place = { readonly score: number; readonly start: number; readonly end: number };

export interface Pipelines {
  readonly tokenizer: object;
  readonly classify: Model & {
    readonly cases: readonly { readonly text: string; readonly pair: string | null; readonly labels: Scored[] }[];
  };
  readonly regress: Pipelines["classify"];
  readonly tag: Model & { readonly cases: readonly { readonly text: string; readonly found: (Scored & Place)[] }[] };
  readonly answer: Model & {
    readonly cases: readonly { readonly question: string; readonly context: string; readonly answers: Place[] }[];
  };
  readonly fillMask: Model & {
    readonly cases: readonly {
      readonly text: string;
      readonly masks: { readonly token: number; readonly score: number }[][];
    }[];
  };
}

const fixtures = join(packageRoot, "test", "fixtures");
const read = (...path: string[]) => JSON.parse(readFileSync(join(fixtures, ...path), "utf8"));
export const pipelines: Pipelines = read("encoders", "pipelines.json");

/** Writes the folder of a model, with `changes` of its config, and without the weights of a head if `isBare`. */
export async function folderOf(
  path: string,
  task: Exclude<keyof Pipelines, "tokenizer">,
  { isBare = false, ...changes }: { readonly isBare?: boolean; readonly [key: string]: unknown } = {},
): Promise<string> {
  mkdirSync(path, { recursive: true });
  const { config, shapes } = pipelines[task];
  const architectures = isBare ? { architectures: ["BertModel"] } : {};
  writeFileSync(join(path, "config.json"), JSON.stringify({ ...config, ...architectures, ...changes }));
  const { tokenizer, config: own } = read("text", "bert.json");
  writeFileSync(join(path, "tokenizer.json"), JSON.stringify({ ...tokenizer, ...pipelines.tokenizer }));
  writeFileSync(join(path, "tokenizer_config.json"), JSON.stringify({ ...own, mask_token: "[MASK]" }));
  const isHead = (key: string) => /^(classifier|qa_outputs)\./.test(key);
  const tensors = Object.entries(shapes).flatMap(([key, shape]): [string, Tensor][] =>
    isBare && isHead(key) ? [] : [[key, isHead(key) ? (mul(weight(key, shape), 4) as Tensor) : weight(key, shape)]],
  );
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
  return path;
}

export const load = async (path: string): Promise<nn.Encoder> => (await nn.loadModel<nn.Encoder>(path)).model;
