/** Small encoders of `transformers` with their results: scripts/fixtures/models/encoders.py. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, nn, noGrad, type Tensor, tensor } from "../../../../src/index.ts";
import type { EncoderName } from "../../../../src/nn/models/loading/encoder/architectures.ts";
import { errorOf, weight } from "../weights.ts";

export { errorOf, weight };

export type Shapes = Readonly<Record<string, number[]>>;
export type Task = "none" | "classify" | "tag" | "answer" | "fillMask";
export interface Case {
  readonly task: Task;
  readonly change: Readonly<Record<string, unknown>>;
  /** A key that the config lacks. */
  readonly missing?: string;
  /** Whether the types of tokens are passed. */
  readonly types?: boolean;
  /** The name of a tensor, `"same"` where the change has no effect, or null where `transformers` fails. */
  readonly output: string | null;
  /** Shapes of the checkpoint that differ; null for a tensor that it lacks. */
  readonly shapes?: Readonly<Record<string, number[] | null>>;
}
export interface Family {
  readonly fields: Readonly<Record<string, { readonly default: unknown; readonly type: string }>>;
  readonly config: Readonly<Record<string, unknown>>;
  readonly classes: Readonly<Record<Task, string>>;
  readonly shapes: Readonly<Record<Task, Shapes>>;
  readonly cases: readonly Case[];
}

const fixture = join(packageRoot, "test", "fixtures", "encoders", "configs");
export const { families }: { families: Record<EncoderName, Family> } = JSON.parse(
  readFileSync(`${fixture}.json`, "utf8"),
);
export const answers = io.loadSafetensors(`${fixture}.safetensors`);
export const names = Object.keys(families) as EncoderName[];
export const lengths = Array.from(answers["lengths"].dataSync(), Number);

export const configOf = (name: EncoderName, { task, change, missing }: Case): Readonly<Record<string, unknown>> => {
  const { config, classes } = families[name];
  const changed = Object.entries({ architectures: [classes[task]], ...config, ...change });
  return Object.fromEntries(changed.filter(([key]) => key !== missing));
};

export async function writeModel(path: string, name: EncoderName, own: Case): Promise<void> {
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "config.json"), JSON.stringify(configOf(name, own)));
  const shapes: NonNullable<Case["shapes"]> = { ...families[name].shapes[own.task], ...own.shapes };
  const tensors = Object.entries(shapes).flatMap(([key, shape]) =>
    shape === null ? [] : [[key, weight(key, shape)] as const],
  );
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
}

export const loadEncoder = async (path: string): Promise<nn.Encoder> =>
  (await nn.loadModel<nn.Encoder>(path, { dtype: "float32" })).model;

/** Returns the part of a result that the fixture has: all of a matrix, else the results of tokens 0 and 5. */
export const kept = (out: Tensor): Tensor =>
  out.rank === 2 ? out : out.indexSelect(1, tensor([0, 5], { dtype: "int32" }));

/** The results of a model for the two texts of the fixture. */
export function outputOf(model: nn.Encoder, { types }: Pick<Case, "types">): Tensor {
  const tokenTypes = types ? answers["tokenTypes"] : undefined;
  return kept(noGrad(() => model.forward(answers["tokens"], { lengths, tokenTypes })));
}
