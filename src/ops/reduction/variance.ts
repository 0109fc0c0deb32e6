import { record } from "../../autograd/record.ts";
import { type AxisArguments, aNumber, axes, flag } from "../../core/kinds.ts";
import { finite } from "../../core/options.ts";
import { named, operand, optional, parameters } from "../../core/parameters.ts";
import { type DType, isComplex, type RealOf } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { partOf } from "../complex/part.ts";
import { add, mul, sub } from "../elementwise/arithmetic.ts";
import { div } from "../elementwise/division.ts";
import { sqrt } from "../elementwise/power.ts";
import { dividedWhereNotZero } from "./derivatives.ts";
import { expandResult } from "./expand_result.ts";
import { mean } from "./mean.ts";
import { floatOperand, fold, planReduction, type ReductionOptions, type ReductionPlan } from "./reduce.ts";

/**
 * Options of {@link variance}, {@link std} and {@link varMean}: the axes, whether they are kept, and the correction.
 */
export interface VarianceOptions extends ReductionOptions {
  /**
   * The number subtracted from the count of elements in the divisor: 1 (the default) for a sample, 0 for the whole
   * population.
   */
  correction?: number | undefined;
}

/**
 * Computes the variance over axes, Σ (x − mean)² / max(0, n − correction), in one pass. It is NaN if there are no
 * elements. PyTorch's `var`.
 *
 * @example
 * variance(tensor([1, 2, 4]), { correction: 0 }); // float32 1.5555556
 *
 * @throws {DTypeError} for integers and bools.
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function variance<D extends DType>(x: Tensor<D>, ...options: AxisArguments<VarianceOptions>): Tensor<RealOf<D>>;
export function variance(...values: unknown[]): Tensor {
  const { x, dim, keepdim, correction } = varianceParameters(values);
  if (isComplex(x.dtype)) return varianceOfParts(x, { dim, keepdim, correction });
  const input = floatOperand("var", x);
  const plan = planReduction("var", input, { dim, keepdim });
  const output = fold("var", input, plan, input.dtype, correction);
  record("var", [input], [output], [input], ([gradient], [saved]) => {
    const scaled = mul(gradient, 2 / freedom(plan, correction));
    return [mul(expandResult(scaled, plan, saved.shape), centered(saved, plan))];
  });
  return output;
}
const variances = {
  x: operand(aTensor),
  dim: optional(axes),
  keepdim: named(flag, false), // by name only: PyTorch's flag in this position is `unbiased`
  correction: named(aNumber(finite), 1),
} as const;
const varianceParameters = parameters("var", variances);
variance.method = "real" as const;

export { variance as var };

/** The variance of complex numbers is real: the sum of the variances of the real and the imaginary parts. */
const varianceOfParts = (x: Tensor, options: VarianceOptions): Tensor =>
  add(variance(partOf("real", x, 0), options), variance(partOf("imag", x, 1), options));

/**
 * Computes the standard deviation over axes, the square root of the {@link variance}. Its gradient is 0 if all elements
 * are equal.
 *
 * @example
 * std(tensor([[1, 2], [3, 7]]), { dim: 1 }); // float32 [0.70710678, 2.8284271]
 *
 * @throws {DTypeError} for integers and bools.
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function std<D extends DType>(x: Tensor<D>, ...options: AxisArguments<VarianceOptions>): Tensor<RealOf<D>>;
export function std(...values: unknown[]): Tensor {
  const { x, dim, keepdim, correction } = stdParameters(values);
  if (isComplex(x.dtype)) return sqrt(varianceOfParts(x, { dim, keepdim, correction }));
  const input = floatOperand("std", x);
  const plan = planReduction("std", input, { dim, keepdim });
  const output = fold("std", input, plan, input.dtype, correction);
  record("std", [input], [output], [input, output], ([gradient], [saved, result]) => {
    const scaled = div(gradient, freedom(plan, correction));
    const derivative = dividedWhereNotZero(centered(saved, plan), expandResult(result, plan, saved.shape));
    return [mul(expandResult(scaled, plan, saved.shape), derivative)];
  });
  return output;
}
const stdParameters = parameters("std", variances);
std.method = "real" as const;

/** Result of {@link varMean}. */
export interface VarianceAndMean<D extends DType> {
  readonly variance: Tensor<RealOf<D>>;
  readonly mean: Tensor<D>;
}

/**
 * Computes the {@link variance} and the mean over the same axes.
 *
 * @example
 * const { variance, mean } = varMean(tensor([[1, 2], [3, 7]]), 1); // [0.5, 8] and [1.5, 5]
 *
 * @throws as {@link variance}
 */
export function varMean<D extends DType>(x: Tensor<D>, ...options: AxisArguments<VarianceOptions>): VarianceAndMean<D>;
export function varMean(...values: unknown[]): VarianceAndMean<DType> {
  const { x, dim, keepdim, correction } = varMeanParameters(values);
  planReduction("varMean", floatOperand("varMean", x, undefined, true), { dim }); // so that errors name this operation
  return { variance: variance(x, { dim, keepdim, correction }), mean: mean(x, { dim, keepdim }) };
}
const varMeanParameters = parameters("varMean", variances);
varMean.method = "declared" as const;

/** Result of {@link stdMean}. */
export interface DeviationAndMean<D extends DType> {
  readonly std: Tensor<RealOf<D>>;
  readonly mean: Tensor<D>;
}

/**
 * Computes the standard deviation and the mean over the same axes; see {@link std} and `mean`.
 *
 * @example
 * stdMean(tensor([1, 2, 3])); // std 1, mean 2
 *
 * @throws {DTypeError} for integers and bools.
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function stdMean<D extends DType>(x: Tensor<D>, ...options: AxisArguments<VarianceOptions>): DeviationAndMean<D>;
export function stdMean(...values: unknown[]): DeviationAndMean<DType> {
  const { x, dim, correction, keepdim } = stdMeanParameters(values);
  planReduction("stdMean", floatOperand("stdMean", x, undefined, true), { dim }); // so that errors name this operation
  return { std: std(x, { dim, keepdim, correction }), mean: mean(x, { dim, keepdim }) };
}
const stdMeanParameters = parameters("stdMean", variances);
stdMean.method = "declared" as const;

const freedom = ({ count }: ReductionPlan, correction: number): number => Math.max(0, count - correction);

const centered = (x: Tensor, { axes }: ReductionPlan): Tensor =>
  axes.length === 0 ? sub(x, x) : sub(x, mean(x, { dim: axes, keepdim: true }));
