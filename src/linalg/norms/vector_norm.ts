import { noGrad } from "../../autograd/modes.ts";
import { capturing } from "../../backend/capture.ts";
import { underName } from "../../backend/dispatch.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { aNumber, axes, flag } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { currentCapture } from "../../observe/capture.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { abs, mul } from "../../ops/elementwise/arithmetic.ts";
import { gt } from "../../ops/elementwise/comparison.ts";
import { div } from "../../ops/elementwise/division.ts";
import { logicalAnd } from "../../ops/elementwise/logic.ts";
import { isfinite } from "../../ops/elementwise/predicates.ts";
import { where } from "../../ops/elementwise/where.ts";
import { amax, amin } from "../../ops/reduction/extrema.ts";
import { norm } from "../../ops/reduction/norm.ts";
import { floatOperand, planReduction, type ReductionOptions } from "../../ops/reduction/reduce.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { type DType, isComplex, type RealOf } from "../../tensor/dtype.ts";
import { aDType, aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** Options of {@link vectorNorm}: the order, the axes, whether reduced axes are kept with size 1, and the dtype. */
export interface VectorNormOptions<D extends DType = DType> extends ReductionOptions {
  /** The order: any number, ±Infinity included. Default 2. */
  ord?: number | undefined;
  /** A float dtype to which elements are converted first. */
  dtype?: D | undefined;
}

/**
 * Computes the norm of the elements along axes as one vector, (Σ |x|ᵒʳᵈ)^(1/ord): the largest |x| for ∞, the smallest
 * for −∞, the number of nonzero elements for 0. It scales elements, so no square overflows or underflows. The gradient
 * is 0 if the norm is 0; for ±∞, equally large elements share it. It is the same as `norm`, with the argument names of
 * `torch.linalg.vector_norm`.
 *
 * @param x of a float or complex dtype; any shape
 *
 * @example
 * linalg.vectorNorm(tensor([[3, 4], [6, 8]]), { dim: 1 }); // float32 [5, 10]
 *
 * @throws {DTypeError} for integers and bools, and a `dtype` that is not a float. @throws {ShapeError} for an axis out
 * of range, or named twice, and if there are no elements and the order is ∞ or below 0. @throws {ArgumentError} if ord
 * is NaN.
 */
export function vectorNorm<D extends DType>(
  x: Tensor<D>,
  ...options: Given<Omit<VectorNormOptions, "dtype">, ["ord", "dim", "keepdim"]>
): Tensor<RealOf<D>>;
export function vectorNorm<D extends DType>(x: Tensor, options: VectorNormOptions<D> & { dtype: D }): Tensor<RealOf<D>>;
export function vectorNorm(...values: unknown[]): Tensor {
  const { x, ord, dim, keepdim, dtype } = vectorNormParameters(values);
  const converted = toDType(x, floatOperand("vectorNorm", x, dtype, true).dtype);
  const input = isComplex(converted.dtype) ? abs(converted) : converted;
  const isScaled = input.dtype !== "float64" || [0, 1].includes(ord) || !Number.isFinite(ord) || input.size === 0;
  return underName("vectorNorm", () => {
    if (isScaled) return norm(input, { p: ord, dim, keepdim });
    return exactNorm(input, ord, dim, keepdim) ?? scaledNorm(input, ord, dim, keepdim);
  });
}

/** For norms in this range, no square and no sum of squares is near overflow or underflow. */
const LEAST = 1e-140;
const MOST = 1e140;
/** Maximum number of results to check. For more, checking would take longer than scaling. */
const MOST_RESULTS = 4096;

/** Returns the Euclidean norm without scaling; undefined if a square may have overflowed or underflowed. */
function exactNorm(x: Tensor, p: number, dim: ReductionOptions["dim"], keepdim: boolean): Tensor | undefined {
  // recorded and lifted calls have no values to check
  if (p !== 2 || currentCapture() !== null || capturing() !== undefined || liftingOf([x], undefined)) return undefined;
  const result = norm(x, { dim, keepdim });
  if (result.size <= MOST_RESULTS && (result.dataSync() as Float64Array).every((y) => y > LEAST && y < MOST))
    return result;
  result.dispose();
  return undefined;
}

/**
 * Divides float64 elements by the largest one, or by the smallest one for a negative order, because no wider dtype can
 * hold their powers. The norm is homogeneous, so scaling does not change its gradient.
 */
function scaledNorm(x: Tensor, p: number, dim: ReductionOptions["dim"], keepdim: boolean): Tensor {
  const scale = noGrad(() => {
    const extreme = (p < 0 ? amin : amax)(abs(x), { dim, keepdim: true });
    return where(logicalAnd(gt(extreme, 0), isfinite(extreme)), extreme, 1);
  });
  const result = mul(norm(div(x, scale), { p, dim, keepdim: true }), scale);
  return keepdim ? result : reshape(result, planReduction("vectorNorm", x, { dim }).shape);
}
const vectorNormParameters = parameters("vectorNorm", {
  x: operand(aTensor),
  ord: optional(aNumber({ holds: (ord) => !Number.isNaN(ord), expected: "a number, ±Infinity included" }), 2),
  dim: optional(axes),
  keepdim: optional(flag, false),
  dtype: named(aDType),
});
