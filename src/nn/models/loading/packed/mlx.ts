/**
 * Reads MLX's folders. A layer has `weight` in words, `scales` and `biases`; with mxfp4, `scales` are exponents.
 * `mlx-lm` stacks the experts of a layer in one tensor per projection.
 */
import { getOrMake, lastElement } from "../../../../core/collections.ts";
import type { Json } from "../../../../io/json.ts";
import { fileDType } from "../../../../io/safetensors/dtypes.ts";
import type { SafetensorsReader } from "../../../../io/safetensors/file.ts";
import { type FormatEntries, ofEntry, readEntries } from "../../../../io/safetensors/quantized.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { narrow } from "../../../../ops/view/slice.ts";
import { formatName, valuesOfBlock } from "../../../../quant/formats.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { keep } from "../../../../tensor/tidy.ts";
import { bytesOfParts, layersWith, type PackedLayer, type Packing } from "./source.ts";

/** Reads a folder that was quantized by MLX. */
export const mlx: Packing = (file, settings) => {
  const fail = (_: string, message: string, tensor?: string) =>
    settings.fail(tensor === undefined ? message : `${tensor}: ${message}`);
  const entries = readEntries(Object.fromEntries(settings.entries()) as { readonly [key: string]: Json }, fail);
  const layers = layersWith(file, "weight").flatMap((name) => {
    if (file.has(`${name}.scales`)) return expertsOf(file, name, layerOf(file, name, entries, fail));
    return STACKED.test(name) ? expertsOf(file, name, plainLayer(file, name)) : [];
  });
  return new Map(layers);
};

/** `mlx-lm`'s experts: `model.layers.0.mlp.switch_mlp.up_proj`. */
const STACKED = /^(.*)\.switch_mlp\.(\w+)$/;

type Fail = Parameters<typeof readEntries>[1];

/** Returns a layer, or the layer at `index` in a stack of `count`. */
type Stack = (index?: number, count?: number) => PackedLayer;

function layerOf(file: SafetensorsReader, name: string, entries: FormatEntries, fail: Fail): Stack {
  const entry = entries.byName.get(name) || entries.byName.get(`${name}.weight`) || entries.fallback;
  if (!entry) throw fail("invalidQuantization", "it has scales, but no format in the quantization settings", name);
  const { format, mode } = entry;
  const parts = ["weight", "scales", "biases"].map((part) => `${name}.${part}`).filter((part) => file.has(part));
  const describe = (index: number | undefined, count: number) => {
    const { shape } = file.info(`${name}.scales`);
    const sizes = [...shape.slice(index === undefined ? 0 : 1, -1), lastElement(shape) * valuesOfBlock(format)];
    const stored = { shape: sizes, byteLength: bytesOfParts(file, parts) / count, isComputed: mode !== undefined };
    return { ...stored, type: `MLX ${formatName(format)}`, dtype: null, format };
  };
  const item = itemsOf(file);
  const read = (index: number | undefined) => {
    const part = (end: string) => (file.has(`${name}.${end}`) ? item(`${name}.${end}`, index) : undefined);
    return ofEntry(entry, { packed: part("weight")!, scales: part("scales"), biases: part("biases") }, name, fail);
  };
  return (index, count = 1) => ({ parts, describe: () => describe(index, count), read: () => read(index) });
}

/** Stacked layers that are not quantized. */
function plainLayer(file: SafetensorsReader, name: string): Stack {
  const weight = `${name}.weight`;
  const { dtype: type, shape, byteLength } = file.info(weight);
  const stored = { type, dtype: fileDType(type)?.dtype ?? null, format: null };
  const item = itemsOf(file);
  return (index, count = 1) => ({
    parts: [weight],
    describe: () => ({ ...stored, shape: shape.slice(1), byteLength: byteLength / count }),
    read: () => item(weight, index),
  });
}

/**
 * Returns a function that reads tensors. Matrices of a stack are views of one tensor, so that each stack is mapped
 * once.
 */
function itemsOf(file: SafetensorsReader): (name: string, index: number | undefined) => Tensor {
  const stacks = new Map<string, Tensor>();
  return (name, index) => {
    if (index === undefined) return file.tensor(name);
    const stack = getOrMake(stacks, name, () => keep(file.tensor(name)));
    return reshape(narrow(stack, 0, index, 1), [...stack.shape.slice(1)]);
  };
}

/** The names of experts' projections in Mixtral's checkpoints. */
const mixtral: Readonly<Record<string, string>> = { gate_proj: "w1", down_proj: "w2", up_proj: "w3" };

/**
 * Returns a layer under its name. A stack of experts becomes one layer per expert, under the names of unstacked
 * checkpoints.
 */
function expertsOf(file: SafetensorsReader, name: string, stack: Stack): (readonly [string, PackedLayer])[] {
  const [, block, projection] = STACKED.exec(name) ?? [];
  if (block === undefined || projection === undefined) return [[name, stack()]];
  const count = file.info(`${name}.weight`).shape[0];
  const fileProjection = block.endsWith("block_sparse_moe") ? (mixtral[projection] ?? projection) : projection;
  return Array.from({ length: count }, (_, index) => [
    `${block}.experts.${index}.${fileProjection}`,
    stack(index, count),
  ]);
}
