/** Small vision-language models of `transformers` with their results: scripts/fixtures/models/vision_language.py. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { mul, nn, type Tensor } from "../../../../src/index.ts";
import { weight } from "../encoder/oracle.ts";
import { writeHashed } from "../loading/oracle.ts";

/** Describes an image before its pixels are created. */
export interface ImageCase {
  readonly pixels: readonly number[];
  readonly grid: readonly [rows: number, columns: number];
  readonly tokens: number;
}

export interface Case {
  readonly config: Readonly<Record<string, unknown>>;
  readonly shapes: Readonly<Record<string, readonly number[]>>;
  readonly rows: readonly (readonly number[])[];
  readonly images: readonly (readonly ImageCase[])[];
  /** [3, rows, tokens] */
  readonly positions?: readonly (readonly (readonly number[])[])[];
  readonly logits: readonly (readonly number[])[];
  readonly greedy: readonly (readonly number[])[];
}

const file = join(packageRoot, "test", "fixtures", "vision_language", "models.json");
export const families: Readonly<Record<string, readonly Case[]>> = JSON.parse(readFileSync(file, "utf8"));

/** Writes the folder of a model, and loads it. */
export async function loadCase(path: string, { config, shapes }: Case): Promise<nn.VisionLanguageModel> {
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "config.json"), JSON.stringify(config));
  await writeHashed(path, shapes, String(config["model_type"]).startsWith("gemma"));
  return (await nn.loadModel<nn.VisionLanguageModel>(path, { dtype: "float32" })).model;
}

/** Returns the images of each row. The pixels of the n-th image are a hash. */
export function imagesOf({ images }: Case): nn.ImageInputs[][] {
  let count = 0;
  return images.map((row) =>
    row.map(({ pixels, ...others }) => ({ ...others, pixels: mul(weight(`pixels.${count++}`, pixels), 2) as Tensor })),
  );
}

/** Returns rows of one length, and the padding at the start of each. */
export function padded({ rows }: Case): { readonly tokens: number[][]; readonly padding: number[] } {
  const longest = Math.max(...rows.map(({ length }) => length));
  const padding = rows.map(({ length }) => longest - length);
  return { tokens: rows.map((row, at) => [...new Array<number>(padding[at]).fill(0), ...row]), padding };
}
