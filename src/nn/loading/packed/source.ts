/** Folders of quantised weights: layers whose weight is in several tensors of a file, each method in its own way. */
import type { SafetensorsReader } from "../../../io/safetensors/file.ts";
import type { QuantizedTensor } from "../../../quant/quantized_tensor.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Settings } from "../settings.ts";
import { type StoredTensor, safetensorsSource, type WeightSource } from "../source.ts";
import { floats } from "./elements.ts";

/** The weight of a layer in a file. */
export interface PackedLayer {
  /** The names of the tensors that it is in. */
  readonly parts: readonly string[];
  describe(): StoredTensor;
  read(): Tensor | QuantizedTensor;
}

/** The packed layers of a file by name, such as `model.layers.0.mlp.up_proj`, of one method. */
export type Packing = (file: SafetensorsReader, settings: Settings) => ReadonlyMap<string, PackedLayer>;

const [WEIGHT, BIAS] = [".weight", ".bias"];

/** The file with a tensor `weight` for each packed layer, in place of its parts. */
export function packedSource(file: SafetensorsReader, layers: ReadonlyMap<string, PackedLayer>): WeightSource {
  const plain = safetensorsSource(file);
  const parts = new Set([...layers.values()].flatMap((layer) => layer.parts));
  const layerOf = (name: string, end = WEIGHT) =>
    name.endsWith(end) ? layers.get(name.slice(0, -end.length)) : undefined;
  const names = [...file.names.filter((name) => !parts.has(name)), ...[...layers.keys()].map((own) => own + WEIGHT)];
  const known = new Set(names);
  return {
    ...{ ...plain, names },
    has: (name) => known.has(name),
    describe: (name) => layerOf(name)?.describe() ?? plain.describe(name),
    read: (name) => layerOf(name)?.read() ?? plain.read(name),
    // some packers give each layer a bias, of zeros where the model has none
    isNeutral: (name) => layerOf(name, BIAS) !== undefined && floats(file.tensor(name)).every((value) => value === 0),
  };
}

/** The bytes of some tensors. */
export const bytesOfParts = (file: SafetensorsReader, names: readonly string[]): number =>
  names.reduce((sum, name) => sum + file.info(name).byteLength, 0);

/** The layers that have a tensor of some name: `qweight`. */
export const layersWith = (file: SafetensorsReader, part: string): string[] =>
  file.names.filter((name) => name.endsWith(`.${part}`)).map((name) => name.slice(0, -part.length - 1));
