/** Files of weights in any format: descriptions of their tensors, and the tensors themselves. */
import type { GgufReader } from "../../../io/gguf/file.ts";
import { tensorTypes } from "../../../io/gguf/types.ts";
import { fileDType } from "../../../io/safetensors/dtypes.ts";
import type { SafetensorsReader } from "../../../io/safetensors/file.ts";
import type { QuantizedFormat } from "../../../quant/formats.ts";
import type { QuantizedTensor } from "../../../quant/quantized_tensor.ts";
import type { DType } from "../../../tensor/dtype.ts";
import type { Shape } from "../../../tensor/shape.ts";
import type { Tensor } from "../../../tensor/tensor.ts";

/** A tensor in a file, before it is read. */
export interface StoredTensor {
  readonly shape: Shape;
  readonly byteLength: number;
  /** The type's name in the file. */
  readonly type: string;
  /** The dtype of a plain tensor; null for quantized tensors and unsupported types. */
  readonly dtype: DType | null;
  /** The format of a quantized tensor; null for plain tensors. */
  readonly format: QuantizedFormat | null;
  /** Whether reading computes the values instead of returning a view of the file. Default false. */
  readonly isComputed?: boolean;
}

/** An open file of weights. */
export interface WeightSource extends Disposable {
  readonly path: string;
  readonly names: readonly string[];
  has(name: string): boolean;
  describe(name: string): StoredTensor;
  read(name: string): Tensor | QuantizedTensor;
  /** Whether an unexpected tensor may be ignored, because it has no effect. Default: no tensor. */
  isNeutral?(name: string): boolean;
}

/** Safetensors, in one file or several. */
export const safetensorsSource = (file: SafetensorsReader): WeightSource => ({
  path: file.path,
  names: file.names,
  has: (name) => file.has(name),
  read: (name) => file.tensor(name),
  describe(name) {
    const { dtype, shape, byteLength } = file.info(name);
    return { shape, byteLength, type: dtype, dtype: fileDType(dtype)?.dtype ?? null, format: null };
  },
  [Symbol.dispose]: () => file.close(),
});

const ggufTypes = new Map([...tensorTypes.values()].map((type) => [type.name, type]));

/** GGUF. */
export const ggufSource = (file: GgufReader): WeightSource => ({
  path: file.path,
  names: file.names,
  has: (name) => file.has(name),
  read: (name) => file.tensor(name),
  describe(name) {
    const { type, shape, byteLength } = file.info(name);
    const as = ggufTypes.get(type)?.as ?? null;
    const dtype = as !== null && "dtype" in as ? as.dtype : null;
    return { shape, byteLength, type, dtype, format: as !== null && "format" in as ? as.format : null };
  },
  [Symbol.dispose]: () => file.close(),
});
