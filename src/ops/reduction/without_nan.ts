/** Reductions that ignore NaN, `countNonzero` and `aminmax`. */
import { record } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { type AxisArguments, axes as axesKind } from "../../core/kinds.ts";
import { operand, optional, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { normalizeAxes, normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { checkReal } from "../creation/create.ts";
import { ne } from "../elementwise/comparison.ts";
import { div } from "../elementwise/division.ts";
import { isnan } from "../elementwise/predicates.ts";
import { where } from "../elementwise/where.ts";
import { expandResult } from "./expand_result.ts";
import { amax, amin, sharedExtremum } from "./extrema.ts";
import {
  floatOperand,
  fold,
  planReduction,
  type ReductionArguments,
  type ReductionPlan,
  reductionParameters,
} from "./reduce.ts";
import { foldParameters, type SumOf, type SumOptions, sum } from "./sum.ts";

/**
 * Computes the sum over axes of the elements that are not NaN. Integers and bools are added in int64. The gradient is 0
 * at NaN.
 *
 * @example
 * nansum(tensor([1, Number.NaN, 2])); // float32 3
 *
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function nansum<D extends DType, E extends DType = SumOf<D>>(
  x: Tensor<D>,
  ...options: ReductionArguments<SumOptions<E>>
): Tensor<E>;
export function nansum(...values: unknown[]): Tensor {
  const { x, dim, keepdim, dtype } = nansumParameters(values);
  const plan = planReduction("nansum", x, { dim, keepdim });
  checkReal("nansum", x.dtype);
  if (isFloat(x.dtype) && isFloat(dtype ?? x.dtype))
    return underName("nansum", () => tidy(() => sumOfNumbers(toDType(x, dtype ?? x.dtype), plan)));
  // converted to integers, NaN is 0, and integers have none
  const numbers = () => (isFloat(x.dtype) ? where(isnan(x), 0, x) : x);
  return underName("nansum", () => tidy(() => sum(numbers(), { dim, keepdim, ...(dtype && { dtype }) })));
}
const nansumParameters = foldParameters("nansum");
nansum.method = "summed" as const;

/** Adds the floats that are not NaN, in one pass. @param dtype of the result. Default: x's */
function sumOfNumbers(x: Tensor, plan: ReductionPlan, dtype = x.dtype): Tensor {
  const output = fold("nansum", x, plan, dtype);
  record("nansum", [x], [output], [x], ([gradient], [input]) => [
    toDType(where(isnan(input), 0, expandResult(gradient, plan, input.shape)), input.dtype),
  ]);
  return output;
}

/**
 * Computes the mean over axes of the elements that are not NaN. It is NaN if all elements are NaN. The gradient is 0 at
 * NaN.
 *
 * @example
 * nanmean(tensor([1, Number.NaN, 2])); // float32 1.5
 *
 * @throws {DTypeError} for integers and bools without a float `dtype`.
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function nanmean<D extends DType, E extends DType = D>(
  x: Tensor<D>,
  ...options: ReductionArguments<SumOptions<E>>
): Tensor<E>;
export function nanmean(...values: unknown[]): Tensor {
  const { x, dim, keepdim, dtype } = nanmeanParameters(values);
  const input = floatOperand("nanmean", x, dtype);
  const plan = planReduction("nanmean", input, { dim, keepdim });
  return underName("nanmean", () =>
    tidy(() => {
      const wide = accumulationDType(input.dtype);
      return toDType(div(sumOfNumbers(input, plan, wide), fold("nancount", input, plan, wide)), input.dtype);
    }),
  );
}
const nanmeanParameters = foldParameters("nanmean");
nanmean.method = "averaged" as const;

/**
 * Computes the largest element over axes that is not NaN, or NaN if all are. Equally large elements share the gradient,
 * which is 0 at NaN elsewhere.
 *
 * @example
 * nanmax(tensor([1, Number.NaN, 2])); // float32 2
 *
 * @throws {ShapeError} if there are no elements along the axes, or an axis is out of range or given twice.
 */
export function nanmax<D extends DType>(x: Tensor<D>, ...options: ReductionArguments): Tensor<D>;
export function nanmax(...values: unknown[]): Tensor {
  const { x, dim, keepdim } = nanmaxParameters(values);
  return sharedExtremum("nanmax", isFloat(x.dtype) ? "nanmax" : "amax", x, { dim, keepdim });
}
const nanmaxParameters = reductionParameters("nanmax");
nanmax.method = "same" as const;

/**
 * Computes the smallest element over axes that is not NaN. @see {@link nanmax}
 *
 * @example
 * nanmin(tensor([3, Number.NaN, 2])); // float32 2
 */
export function nanmin<D extends DType>(x: Tensor<D>, ...options: ReductionArguments): Tensor<D>;
export function nanmin(...values: unknown[]): Tensor {
  const { x, dim, keepdim } = nanminParameters(values);
  return sharedExtremum("nanmin", isFloat(x.dtype) ? "nanmin" : "amin", x, { dim, keepdim });
}
const nanminParameters = reductionParameters("nanmin");
nanmin.method = "same" as const;

/**
 * Counts the nonzero elements along the axes. NaN is nonzero.
 *
 * @example
 * countNonzero(tensor([[1, 0], [2, 3]]), { dim: 0 }); // int64 [2, 1]
 *
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function countNonzero(
  x: Tensor,
  ...options: AxisArguments<{ dim?: number | readonly number[] }>
): Tensor<"int64">;
export function countNonzero(...values: unknown[]): Tensor<"int64"> {
  const { x, dim } = countNonzeroParameters(values);
  normalizeAxes("countNonzero", dim, x.rank);
  return underName("countNonzero", () => tidy(() => sum(x.dtype === "bool" ? x : ne(x, 0), { dim })));
}
const countNonzeroParameters = parameters("countNonzero", { x: operand(aTensor), dim: optional(axesKind) });
countNonzero.method = "int64" as const;

/** Result of {@link aminmax}. */
export interface Extrema<D extends DType> {
  readonly min: Tensor<D>;
  readonly max: Tensor<D>;
}

/**
 * Computes the smallest and the largest of all elements, or along an axis. Equal elements share the gradient.
 *
 * @returns min and max, each a scalar, or with `dim` of x's shape without that axis (of size 1 with `keepdim`)
 *
 * @example
 * aminmax(tensor([3, 1, 2])); // min 1, max 3
 *
 * @throws {ShapeError} for an axis out of range or without elements.
 */
export function aminmax<D extends DType>(
  x: Tensor<D>,
  options?: { dim?: number | undefined; keepdim?: boolean | undefined },
): Extrema<D>;
export function aminmax(...values: unknown[]): Extrema<DType> {
  const { x, dim, keepdim } = aminmaxParameters(values);
  if (typeof dim === "object") for (const each of dim) normalizeAxis("aminmax", each, x.rank);
  else if (dim !== undefined) normalizeAxis("aminmax", dim, x.rank);
  return underName("aminmax", () => ({ min: amin(x, { dim, keepdim }), max: amax(x, { dim, keepdim }) }));
}
const aminmaxParameters = reductionParameters("aminmax");
aminmax.method = "declared" as const;
