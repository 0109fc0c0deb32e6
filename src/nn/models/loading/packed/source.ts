/** Folders of packed weights: each method stores a layer's weight as several tensors. */
import { tupleOf } from "../../../../core/tuples.ts";
import type { SafetensorsReader } from "../../../../io/safetensors/file.ts";
import type { QuantizedTensor } from "../../../../quant/quantized_tensor.ts";
import { formatShape, sameShape } from "../../../../tensor/shape.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import type { Settings } from "../settings.ts";
import { type StoredTensor, safetensorsSource, type WeightSource } from "../source.ts";
import { floats } from "./elements.ts";

/** The packed weight of a layer in a file. */
export interface PackedLayer {
  /** The names of the tensors that it consists of. */
  readonly parts: readonly string[];
  describe(): StoredTensor;
  read(): Tensor | QuantizedTensor;
}

/** A method's reader: returns the packed layers of a file by name, such as `model.layers.0.mlp.up_proj`. */
export type Packing = (file: SafetensorsReader, settings: Settings) => ReadonlyMap<string, PackedLayer>;

const [WEIGHT, BIAS] = [".weight", ".bias"];

/** Presents a file with one tensor `weight` for each packed layer, instead of its parts. */
export function packedSource(file: SafetensorsReader, layers: ReadonlyMap<string, PackedLayer>): WeightSource {
  const plain = safetensorsSource(file);
  const parts = new Set([...layers.values()].flatMap((layer) => layer.parts));
  const layerOf = (name: string, end = WEIGHT) =>
    name.endsWith(end) ? layers.get(name.slice(0, -end.length)) : undefined;
  const names = [
    ...file.names.filter((name) => !parts.has(name)),
    ...[...layers.keys()].map((layer) => layer + WEIGHT),
  ];
  const known = new Set(names);
  return {
    ...plain,
    names,
    has: (name) => known.has(name),
    describe: (name) => layerOf(name)?.describe() ?? plain.describe(name),
    read: (name) => layerOf(name)?.read() ?? plain.read(name),
    // some packers add a bias to each layer, which is all zeros if the model has none
    isNeutral: (name) => layerOf(name, BIAS) !== undefined && floats(file.tensor(name)).every((value) => value === 0),
  };
}

/** The expected form of a packed layer's tensor. */
export interface PartForm {
  /** Safetensors' names of the allowed dtypes. */
  readonly dtypes: readonly string[];
  readonly shape: readonly number[];
}

/** Safetensors' names of integer dtypes. */
export const integers: readonly string[] = ["I32"];
/** Safetensors' names of floating-point dtypes. */
export const floating: readonly string[] = ["F16", "BF16", "F32"];

/**
 * Checks a part of a packed weight. @throws {FileFormatError} for a part that is missing or has another dtype or shape.
 */
export function checkPart(file: SafetensorsReader, settings: Settings, name: string, form: PartForm): void {
  const got = file.has(name) ? file.info(name) : undefined;
  if (got && form.dtypes.includes(got.dtype) && sameShape(got.shape, form.shape)) return;
  const found = got ? `${got.dtype}${formatShape(got.shape)}` : "none";
  throw settings.fail(
    `expected ${name} in the files as ${form.dtypes.join(" or ")}${formatShape(form.shape)}, got ${found}`,
  );
}

/** Returns the sizes of a matrix. @throws {FileFormatError} for another rank or dtype. */
export function matrixOf(
  file: SafetensorsReader,
  settings: Settings,
  name: string,
  dtypes: readonly string[],
): readonly [rows: number, columns: number] {
  const { dtype, shape } = file.info(name);
  if (shape.length === 2 && dtypes.includes(dtype)) return tupleOf(shape, 2);
  throw settings.fail(`expected ${name} as a matrix of ${dtypes.join(" or ")}, got ${dtype}${formatShape(shape)}`);
}

/** Returns the bytes of several tensors. */
export const bytesOfParts = (file: SafetensorsReader, names: readonly string[]): number =>
  names.reduce((sum, name) => sum + file.info(name).byteLength, 0);

/** Returns the names of layers that have a given part, such as `qweight`. */
export const layersWith = (file: SafetensorsReader, part: string): string[] =>
  file.names.filter((name) => name.endsWith(`.${part}`)).map((name) => name.slice(0, -part.length - 1));
