/**
 * Alternative schemes for products with quantized weights: one scale for the matrix, groups as a batch, scales
 * multiplied into the levels beforehand, and SmoothQuant. `quantizedMatmul` is exact and faster: docs/quantization.md
 * has the figures. None of these supports gradients.
 */
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { aNumber, instanceOf } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { fromArray } from "../../ops/creation/tensor.ts";
import { abs, add, mul, sub } from "../../ops/elementwise/arithmetic.ts";
import { eq } from "../../ops/elementwise/comparison.ts";
import { div } from "../../ops/elementwise/division.ts";
import { round } from "../../ops/elementwise/rounding.ts";
import { linear } from "../../ops/matmul/linear.ts";
import { bmm, matmul } from "../../ops/matmul/matmul.ts";
import { amax } from "../../ops/reduction/extrema.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { transpose } from "../../ops/view/permute.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { unpackLevels } from "../affine/pack.ts";
import { dequantize } from "../dequantize/dequantize.ts";
import { type AffineBits, affineBits, formatName } from "../formats.ts";
import { oneOf } from "../quantize.ts";
import { aQuantizedTensor, type QuantizedTensor } from "../quantized_tensor.ts";
import { checkMatrix, checkRows, PerTensorWeights, SmoothWeights } from "./weights.ts";

const perTensorParameters = parameters("quantizePerTensor", {
  w: operand(aTensor),
  bits: named(oneOf<AffineBits>(...affineBits), 8),
});

/** Returns the values in float32, on the host. @throws {ArgumentError} `notFinite` */
function finiteValues(operation: string, x: Tensor): Float32Array {
  const values = tidy(() => noGrad(() => toDType(x, "float32").dataSync()));
  const at = values.findIndex((value) => !Number.isFinite(value));
  if (at < 0) return values;
  throw new ArgumentError(operation, "notFinite", `expected finite values, got ${values[at]} as value ${at}`);
}

/**
 * Quantizes weights with one scale and one zero point for the whole matrix: W ≈ scale · (level − zero).
 *
 * @param w [out, in] of a float dtype
 *
 * @example
 * matmulPerTensor(x, quantizePerTensor(w, { bits: 8 }));
 *
 * @throws {ShapeError} `wrongRank`. @throws {DTypeError} `notAFloat`. @throws {ArgumentError} `notFinite`.
 */
export function quantizePerTensor(w: Tensor, options?: { bits?: AffineBits | undefined }): PerTensorWeights;
export function quantizePerTensor(...values: unknown[]): PerTensorWeights {
  const { w, bits } = perTensorParameters(values);
  checkMatrix("quantizePerTensor", w);
  const numbers = finiteValues("quantizePerTensor", w);
  let [low, high] = [0, 0];
  for (const value of numbers) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const most = 2 ** bits - 1;
  const scale = high > low ? (high - low) / most : 1;
  const zero = Math.round(-low / scale);
  const levels = Uint8Array.from(numbers, (value) => Math.min(Math.max(Math.round(value / scale) + zero, 0), most));
  return new PerTensorWeights(fromArray(levels, w.shape), scale, zero, bits);
}

const matmulPerTensorParameters = parameters("matmulPerTensor", {
  x: operand(aTensor),
  w: operand(instanceOf(PerTensorWeights, "weights from quantizePerTensor")),
});

/**
 * Computes Y = scale · (X Lᵀ − zero · ΣX): one product with the levels L, and the sums of the rows of x.
 *
 * @param x […, in], float32
 * @returns […, out]
 *
 * @example
 * matmulPerTensor(randn([3, 256]), quantizePerTensor(randn([128, 256]))); // float32[3, 128]
 *
 * @throws {ShapeError} `shapesDiffer`. @throws {DTypeError} `unsupportedDType`. @throws {DisposedError}
 */
export function matmulPerTensor(x: Tensor, w: PerTensorWeights): Tensor;
export function matmulPerTensor(...values: unknown[]): Tensor {
  const { x, w } = matmulPerTensorParameters(values);
  checkRows("matmulPerTensor", x, w.levels.shape[1]);
  const { levels, scale, zero } = w;
  return tidy(() =>
    noGrad(() => {
      const product = linear(x, toDType(levels, "float32"));
      return mul(sub(product, mul(sum(x, { dim: -1, keepdim: true }), zero)), scale);
    }),
  );
}

const grouped = { x: operand(aTensor), w: operand(aQuantizedTensor) } as const;
const matmulPerGroupParameters = parameters("matmulPerGroup", grouped);
const matmulPremultipliedParameters = parameters("matmulPremultiplied", grouped);

/** @throws {ArgumentError} `wrongFormat` */
function checkAffine(operation: string, { format, rank }: QuantizedTensor): void {
  if (typeof format === "object" && rank === 2) return;
  throw new ArgumentError(operation, "wrongFormat", `expected an affine matrix, got ${formatName(format)}`);
}

/** Returns the levels of a matrix, centered on 0 if the format is symmetric: float32 [out, in]. */
function levelsOf({ format, parts, shape }: QuantizedTensor): Tensor {
  const { bits, symmetric } = format as { bits: number; symmetric: boolean };
  const levels = new Uint8Array(elementCount(shape));
  unpackLevels(contiguous(parts.packed).dataSync() as Uint32Array, bits, levels);
  const center = symmetric ? 2 ** (bits - 1) : 0;
  return fromArray(
    Float32Array.from(levels, (level) => level - center),
    shape,
  );
}

/**
 * Computes Y = Σ_g (scale_g (X_g L_gᵀ) + bias_g ΣX_g): a batch of products, one per group, summed over the groups. With
 * bias = −zero · scale this is Σ_g scale_g (X_g L_gᵀ − zero_g ΣX_g).
 *
 * @param x […, in], float32
 * @param w [out, in], affine
 * @returns […, out]
 *
 * @example
 * matmulPerGroup(randn([3, 256]), quantize(randn([128, 256]))); // float32[3, 128]
 *
 * @throws {ArgumentError} `wrongFormat`, for blocks. @throws {ShapeError} `shapesDiffer`. @throws {DTypeError}
 * `unsupportedDType`. @throws {DisposedError}
 */
export function matmulPerGroup(x: Tensor, w: QuantizedTensor): Tensor;
export function matmulPerGroup(...values: unknown[]): Tensor {
  const { x, w } = matmulPerGroupParameters(values);
  checkAffine("matmulPerGroup", w);
  const [rows, columns] = tupleOf(w.shape, 2);
  checkRows("matmulPerGroup", x, columns);
  const { groupSize } = w.format as { groupSize: number };
  const [count, groups] = [elementCount(x.shape.slice(0, -1)), columns / groupSize];
  return tidy(() =>
    noGrad(() => {
      const xs = transpose(reshape(x, [count, groups, groupSize]), 0, 1); // [groups, count, groupSize]
      const weights = transpose(reshape(levelsOf(w), [rows, groups, groupSize]), 0, 1);
      const products = bmm(xs, transpose(weights, 1, 2)); // [groups, count, rows]
      const perGroup = (part: Tensor) => reshape(transpose(toDType(part, "float32"), 0, 1), [groups, 1, rows]);
      const scaled = sum(mul(products, perGroup(w.parts.scales!)), { dim: 0 });
      const sums = reshape(sum(xs, { dim: 2 }), [groups, count]);
      const { biases } = w.parts;
      const shape = [...x.shape.slice(0, -1), rows];
      if (biases === undefined) return reshape(scaled, shape);
      const raised = matmul(transpose(sums, 0, 1), transpose(toDType(biases, "float32"), 0, 1));
      return reshape(add(scaled, raised), shape);
    }),
  );
}

/**
 * Computes Y = X (scale · L + bias)ᵀ: it dequantizes the weights, then calls `linear`. The dequantized weights are in
 * memory for the duration of the call.
 *
 * @param x […, in], float32
 * @param w [out, in], affine
 * @returns […, out]
 *
 * @example
 * matmulPremultiplied(randn([3, 256]), quantize(randn([128, 256]))); // float32[3, 128]
 *
 * @throws the same errors as {@link matmulPerGroup}.
 */
export function matmulPremultiplied(x: Tensor, w: QuantizedTensor): Tensor;
export function matmulPremultiplied(...values: unknown[]): Tensor {
  const { x, w } = matmulPremultipliedParameters(values);
  checkAffine("matmulPremultiplied", w);
  checkRows("matmulPremultiplied", x, w.shape[1]);
  return tidy(() => noGrad(() => linear(x, dequantize(w, { dtype: "float32" }))));
}

const strength: Kind<number> = aNumber({
  holds: (value) => value >= 0 && value <= 1,
  expected: "a number from 0 to 1",
});
const smoothQuantizeParameters = parameters("smoothQuantize", {
  w: operand(aTensor),
  ranges: operand(aTensor),
  alpha: named(strength, 0.5),
});

/**
 * Quantizes weights to 8 bits by SmoothQuant. Columns are multiplied by s_j = max|x_j|^α / max|w_j|^(1 − α), and x is
 * divided by it, so that rounding loses little precision in either. Then each row is rounded with a separate scale.
 *
 * @param w [out, in] of a float dtype
 * @param ranges [in]: the largest magnitude of each column of x, such as `calibrate` records
 * @param options `alpha`: the strength of smoothing, from 0 (none of the range of x) to 1 (all of it). Default 0.5
 *
 * @example
 * const calibration = nn.calibrate(model, batches);
 * const w = smoothQuantize(layer.weight, calibration.get("blocks.0.feedForward.up")!.ranges);
 *
 * @throws {ShapeError} `wrongRank`, `shapesDiffer`. @throws {DTypeError} `notAFloat`. @throws {ArgumentError}
 * `notFinite`; `negativeRange`.
 *
 * Source: G. Xiao et al., "SmoothQuant", 2023, equation 4.
 */
export function smoothQuantize(w: Tensor, ranges: Tensor, options?: { alpha?: number | undefined }): SmoothWeights;
export function smoothQuantize(...values: unknown[]): SmoothWeights {
  const operation = "smoothQuantize";
  const { w, ranges, alpha } = smoothQuantizeParameters(values);
  checkMatrix(operation, w);
  const [rows, columns] = w.sizes(2);
  checkRows(operation, ranges, columns);
  const numbers = finiteValues(operation, w);
  const largest = finiteValues(operation, reshape(ranges, [ranges.size]));
  if (largest.length !== columns || largest.some((value) => value < 0))
    throw new ArgumentError(operation, "negativeRange", `expected ${columns} ranges of at least 0, one per column`);
  const columnMost = new Float32Array(columns);
  for (const [at, value] of numbers.entries())
    columnMost[at % columns] = Math.max(columnMost[at % columns], Math.abs(value));
  // A column of zeros, or one that x never uses, is not smoothed.
  const smoothing = largest.map((range, at) =>
    range > 0 && columnMost[at] > 0 ? range ** alpha / columnMost[at] ** (1 - alpha) : 1,
  );
  const scales = new Float32Array(rows);
  const levels = new Int8Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    const smoothed = smoothing.map((factor, column) => numbers[row * columns + column] * factor);
    const most = smoothed.reduce((found, value) => Math.max(found, Math.abs(value)), 0);
    scales[row] = most / 127;
    if (most > 0)
      for (const [at, value] of smoothed.entries()) levels[row * columns + at] = Math.round((value / most) * 127);
  }
  return new SmoothWeights(fromArray(levels, w.shape), fromArray(scales), fromArray(smoothing));
}

const matmulSmoothParameters = parameters("matmulSmooth", {
  x: operand(aTensor),
  w: operand(instanceOf(SmoothWeights, "weights from smoothQuantize")),
});

/**
 * Computes Y = scale_x · scale_w · (Lx Lwᵀ): x / s is rounded to 8 bits, each row with a separate scale, and the
 * product of the levels is summed in integers.
 *
 * @param x […, in], float32
 * @returns […, out]
 *
 * @example
 * matmulSmooth(randn([3, 256]), smoothQuantize(randn([128, 256]), ones([256]))); // float32[3, 128]
 *
 * @throws the same errors as {@link matmulPerTensor}.
 */
export function matmulSmooth(x: Tensor, w: SmoothWeights): Tensor;
export function matmulSmooth(...values: unknown[]): Tensor {
  const { x, w } = matmulSmoothParameters(values);
  checkRows("matmulSmooth", x, w.levels.shape[1]);
  return tidy(() =>
    noGrad(() => {
      const smoothed = div(x, w.smoothing);
      const most = amax(abs(smoothed), { dim: -1, keepdim: true });
      const scale = mul(most, 1 / 127);
      const safe = add(scale, toDType(eq(scale, 0), "float32")); // a row of zeros is divided by 1
      const levels = toDType(round(div(smoothed, safe)), "int32");
      const product = matmul(levels, transpose(toDType(w.levels, "int32"), 0, 1));
      return mul(mul(toDType(product, "float32"), scale), w.scales);
    }),
  );
}
