/** Small networks of `diffusers`, whose weights are hashes: scripts/fixtures/models/diffusion.py. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { io, type nn, noGrad, type Tensor } from "../../src/index.ts";
import { weight } from "../nn/models/encoder/oracle.ts";

const fixtures = join(packageRoot, "test", "fixtures", "diffusion");
export const fixture = (name: string): string => join(fixtures, name);
export const readFixture = <T>(name: string): T => JSON.parse(readFileSync(fixture(name), "utf8")) as T;

/** Weights of a network, so that activations neither grow nor vanish: `scaled` of diffusion.py. */
function scaled(name: string, shape: readonly number[]): Tensor {
  if (shape.length === 1) return weight(name, shape);
  return weight(name, shape).mul(3 / Math.sqrt(shape.slice(1).reduce((product, size) => product * size, 1)));
}

/** `downBlocks.0.convIn.weight` → `down_blocks.0.conv_in.weight` */
export const theirName = (name: string): string =>
  name
    .replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    .replaceAll(/\blinear(\d)/g, "linear_$1")
    .replaceAll(/layer_norm(\d)/g, "layer_norm$1");

/** Tensors of a network's file. */
export const weightsOf = (model: nn.Module, rename = theirName): Record<string, Tensor> =>
  Object.fromEntries(
    [...model.namedParameters()].map(([name, { shape }]) => [rename(name), scaled(theirName(name), shape)]),
  );

/** Writes a folder with a config and weights. */
export async function writePart(
  folder: string,
  part: string,
  { config, model, rename }: { config: object; model: nn.Module; rename?: (name: string) => string },
): Promise<void> {
  mkdirSync(join(folder, part), { recursive: true });
  writeFileSync(join(folder, part, "config.json"), JSON.stringify(config));
  const file = part === "text_encoder" ? "model.safetensors" : "diffusion_pytorch_model.safetensors";
  await io.saveSafetensors(join(folder, part, file), weightsOf(model, rename));
}

/** A tensor's scalar product with a hash, and its norm. */
export type Digest = readonly [product: number, norm: number];

/** How far a tensor is from a digest, relative to the norm. */
export function distance(name: string, x: Tensor, [product, norm]: Digest): number {
  const [values, hash] = noGrad(() => [x.to("float64").contiguous().dataSync(), weight(name, [x.size]).dataSync()]);
  let [ours, squares] = [0, 0];
  for (let at = 0; at < values.length; at++) {
    ours += Number(values[at]) * Number(hash[at]);
    squares += Number(values[at]) ** 2;
  }
  return Math.max(Math.abs(ours - product), Math.abs(Math.sqrt(squares) - norm)) / (norm || 1);
}
