import { noGrad } from "../autograd/modes.ts";
import { lastElement } from "../core/collections.ts";
import { ArgumentError, DTypeError, ShapeError } from "../core/errors.ts";
import { aNumber, choice, flag } from "../core/kinds.ts";
import { type Kind, named, operand, parameters, required } from "../core/parameters.ts";
import { toDType } from "../ops/copy/cast.ts";
import { isFloat } from "../tensor/dtype.ts";
import { aTensor } from "../tensor/kinds.ts";
import { allocateHost } from "../tensor/memory.ts";
import type { Shape } from "../tensor/shape.ts";
import { Storage } from "../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../tensor/tensor.ts";
import { leastSquares, nearest } from "./affine/groups.ts";
import { packLevels } from "./affine/pack.ts";
import { encodeTo } from "./affine/rounding.ts";
import {
  type AffineBits,
  type AffineFormat,
  affineBits,
  blockFormat,
  formatName,
  type GgmlFormat,
  type GroupSize,
  ggmlFormats,
  groupSizes,
  type QuantizedFormat,
  type ScaleDType,
  scaleDTypes,
  valuesOfBlock,
} from "./formats.ts";
import { QuantizedTensor } from "./quantized_tensor.ts";

/** Options of {@link quantizeInt4}. */
export interface QuantizeInt4Options {
  /** The number of values along the last axis that share a scale. Default 64. */
  groupSize?: GroupSize | undefined;
  /** Whether there are no biases: W = (q − 2^(bits − 1)) · scale. Default false: W = q · scale + bias. */
  symmetric?: boolean | undefined;
  /**
   * `"nearest"` (the default) computes scale and bias from the extremes of a group, as MLX does; `"leastSquares"`
   * refines them to reduce the sum of squared errors.
   */
  rounding?: "nearest" | "leastSquares" | undefined;
  /** The dtype of scales and biases. Default the dtype of `w`; float32 for float64. */
  scaleDType?: ScaleDType | undefined;
}

/** Options of {@link quantize}. */
export interface QuantizeOptions extends QuantizeInt4Options {
  /** Bits per value: 2, 3, 4, 5, 6 or 8. Default 4. */
  bits?: AffineBits | undefined;
}

/** Accepts one of a list of numbers. */
export const oneOf = <N extends number>(...numbers: readonly N[]): Kind<N> =>
  aNumber({
    holds: (value) => (numbers as readonly number[]).includes(value),
    expected: `one of ${numbers.join(", ")}`,
  }) as Kind<N>;

const declared = {
  w: operand(aTensor),
  groupSize: named(oneOf(...groupSizes), 64),
  symmetric: named(flag, false),
  rounding: named(choice("nearest", "leastSquares"), "nearest"),
  scaleDType: named(choice(...scaleDTypes)),
} as const;
const quantizeParameters = parameters("quantize", { ...declared, bits: named(oneOf(...affineBits), 4) });
const quantizeInt4Parameters = parameters("quantizeInt4", declared);
const quantizeGgmlParameters = parameters("quantizeGgml", {
  w: operand(aTensor),
  format: required(choice(...ggmlFormats)),
});

/**
 * Quantizes weights in groups, packed as MLX packs them. Each group has a scale and a bias: W = q · scale + bias, which
 * is (q − zero) · scale with bias = −zero · scale. Runs on the host; gradients do not flow through it.
 *
 * @param w […, columns] of a float dtype; columns must be a multiple of the group size
 * @returns a tensor of the shape of `w`, which dequantizes to the dtype of `w`, float32 for float64
 *
 * @example
 * const w = quantize(randn([128, 256]), { bits: 6, groupSize: 32, rounding: "leastSquares" });
 * w.bitsPerValue; // 8: 6, and two float32 for each 32 values
 *
 * @throws {ShapeError} `wrongColumns`, if columns are not a multiple of the group size. @throws {DTypeError} if the
 * dtype is not a float. @throws {ArgumentError} `notFinite`, for NaN or infinity; `scaleOverflow`, for a group whose
 * scale overflows the dtype of scales.
 */
export function quantize(w: Tensor, options?: QuantizeOptions): QuantizedTensor;
export function quantize(...values: unknown[]): QuantizedTensor {
  return inGroups("quantize", quantizeParameters(values));
}

/**
 * Quantizes weights to 4 bits, as {@link quantize} does.
 *
 * @example
 * quantizeInt4(randn([128, 256]), { groupSize: 128, symmetric: true });
 *
 * @throws the same errors as {@link quantize}.
 */
export function quantizeInt4(w: Tensor, options?: QuantizeInt4Options): QuantizedTensor;
export function quantizeInt4(...values: unknown[]): QuantizedTensor {
  return inGroups("quantizeInt4", { ...quantizeInt4Parameters(values), bits: 4 });
}

/**
 * Quantizes weights to GGML's blocks. Runs on the host; gradients do not flow through it.
 *
 * @param w […, columns] of a float dtype; columns must be a multiple of 32 (q2_K to q6_K: 256; f16 and bf16: any
 * number)
 * @param format `"q4_0"`, `"q4_1"`, `"q5_0"`, `"q5_1"`, `"q8_0"`, `"mxfp4"`, `"f16"` or `"bf16"`, packed bit for bit as
 * the `gguf` package packs them; or `"q2_K"`, `"q3_K"`, `"q4_K"`, `"q5_K"`, `"q6_K"`, `"iq4_nl"`, by least squares
 *
 * @example
 * quantizeGgml(randn([128, 256]), "q4_0").byteLength; // 18432
 *
 * @throws {ArgumentError} `notFinite`, for NaN or infinity (f16 and bf16 accept them); `scaleOverflow`, for a block
 * whose scale overflows float16. @throws {ShapeError} `wrongColumns`, if columns are not a multiple of the block size.
 * @throws {DTypeError} if the dtype is not a float.
 */
export function quantizeGgml(w: Tensor, format: GgmlFormat): QuantizedTensor;
export function quantizeGgml(...values: unknown[]): QuantizedTensor {
  const operation = "quantizeGgml";
  const { w, format } = quantizeGgmlParameters(values);
  const block = blockFormat(format);
  const { values: blockValues, bytes: blockBytes, halves } = block;
  checkWeights(operation, w, format);
  const floats = floatsOf(operation, w, blockValues > 1);
  const packed = hostTensor("uint8", shapeWith(w.shape, (lastElement(w.shape) / blockValues) * blockBytes));
  const bytes: Uint8Array = packed.storage.array("uint8");
  for (let from = 0, at = 0; from < floats.length; from += blockValues, at += blockBytes) {
    block.pack(floats, from, bytes, at);
    if (halves.some((half) => isInfiniteHalf(bytes, at + half))) throw scaleOverflow(operation, from, w, "float16");
  }
  return new QuantizedTensor(format, w.shape, resultDType(w), { packed });
}

/** Whether a float16 is infinite or NaN: all bits of its exponent are set. */
const isInfiniteHalf = (bytes: Uint8Array, at: number): boolean => (bytes[at + 1] & 0x7c) === 0x7c;

type GroupOptions = Required<Omit<QuantizeOptions, "scaleDType">> & {
  readonly w: Tensor;
  readonly scaleDType: ScaleDType | undefined;
};

function inGroups(operation: string, options: GroupOptions): QuantizedTensor {
  const {
    w,
    bits,
    groupSize,
    symmetric,
    rounding,
    scaleDType = resultDType(w),
  } = options as GroupOptions & {
    bits: AffineBits;
    groupSize: GroupSize;
    symmetric: boolean;
  };
  const format: AffineFormat = { bits, groupSize, symmetric };
  checkWeights(operation, w, format);
  const floats = floatsOf(operation, w, true);
  const [scales, biases] = [new Float32Array(floats.length / groupSize), new Float32Array(floats.length / groupSize)];
  const levels = new Uint8Array(floats.length);
  const rule = { bits, symmetric, encode: encodeTo[scaleDType] };
  const fit = rounding === "nearest" ? nearest : leastSquares;
  for (let group = 0; group < scales.length; group++) {
    const [from, to] = [group * groupSize, (group + 1) * groupSize];
    const { scale, bias } = fit(floats.subarray(from, to), rule, levels.subarray(from, to));
    [scales[group], biases[group]] = [scale, bias];
  }
  return affineOfLevels(operation, w, format, scaleDType, levels, scales, biases);
}

/**
 * Builds affine weights from levels, and from scales and biases exact in their dtype. @throws {ArgumentError}
 * `scaleOverflow`
 */
export function affineOfLevels(
  operation: string,
  w: Tensor,
  format: AffineFormat,
  scaleDType: ScaleDType,
  levels: Uint8Array,
  scales: Float32Array,
  biases: Float32Array,
): QuantizedTensor {
  const { bits, groupSize, symmetric } = format;
  const columns = lastElement(w.shape);
  const at = scales.findIndex((scale, group) => !Number.isFinite(scale) || !Number.isFinite(biases[group]));
  if (at >= 0) throw scaleOverflow(operation, at * groupSize, w, scaleDType);
  const packed = hostTensor("uint32", shapeWith(w.shape, (columns / 32) * bits));
  const words: Uint32Array = packed.storage.array("uint32");
  packLevels(levels, bits, words);
  const groups = shapeWith(w.shape, columns / groupSize);
  return new QuantizedTensor(format, w.shape, resultDType(w), {
    packed,
    scales: inDType(scales, groups, scaleDType),
    biases: symmetric ? undefined : inDType(biases, groups, scaleDType),
  });
}

/** Returns the dtype of a tensor, but float32 for float64. */
export const resultDType = ({ dtype }: Tensor): ScaleDType => scaleDTypes.find((each) => each === dtype) ?? "float32";

const shapeWith = (shape: Shape, last: number): number[] => [...shape.slice(0, -1), last];

function checkWeights(operation: string, w: Tensor, format: QuantizedFormat): void {
  if (!isFloat(w.dtype))
    throw new DTypeError(
      operation,
      "notAFloat",
      `expected w to have a float dtype, got ${w.dtype}; convert with toDType(w, "float32")`,
    );
  const values = valuesOfBlock(format);
  if (w.rank > 0 && lastElement(w.shape) % values === 0) return;
  throw new ShapeError(
    operation,
    "wrongColumns",
    `expected a multiple of ${values} values along the last axis for ${formatName(format)}, got ${w.describe()}`,
  );
}

/** The values in float32, row-major. */
function floatsOf(operation: string, w: Tensor, mustBeFinite: boolean): Float32Array {
  const floats: Float32Array = noGrad(() => {
    const wide = toDType(w, "float32");
    const data = wide.dataSync();
    if (wide !== w) wide.dispose();
    return data;
  });
  if (mustBeFinite) {
    const at = floats.findIndex((value) => !Number.isFinite(value));
    if (at >= 0)
      throw new ArgumentError(operation, "notFinite", `expected finite values, got ${floats[at]} as value ${at}`);
  }
  return floats;
}

/** Returns the values of weights in float32, all finite. @throws {ArgumentError} `notFinite` */
export const finiteFloats = (operation: string, w: Tensor): Float32Array => floatsOf(operation, w, true);

const scaleOverflow = (operation: string, at: number, w: Tensor, dtype: string): ArgumentError =>
  new ArgumentError(
    operation,
    "scaleOverflow",
    `the scale of the values of ${w.describe()} from index ${at} on overflows ${dtype}; scale w down`,
  );

/** A host tensor of zeros. */
function hostTensor<D extends "uint8" | "uint32" | "float32">(dtype: D, shape: Shape): Tensor<D> {
  const memory = allocateHost(byteLengthOf(shape, dtype));
  const tensor = new Tensor(new Storage(memory), dtype, shape);
  tensor.storage.array(dtype).fill(0 as never);
  return tensor;
}

/** A tensor of values that are exact in a dtype. */
function inDType(values: Float32Array, shape: Shape, dtype: ScaleDType): Tensor<ScaleDType> {
  const floats = hostTensor("float32", shape);
  (floats.storage.array("float32") as Float32Array).set(values);
  if (dtype === "float32") return floats;
  const result = noGrad(() => toDType(floats, dtype));
  floats.dispose();
  return result;
}
