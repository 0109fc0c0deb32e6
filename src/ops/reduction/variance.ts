import { record } from "../../autograd/record.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mul, sub } from "../elementwise/arithmetic.ts";
import { div } from "../elementwise/division.ts";
import { dividedWhereNotZero } from "./derivatives.ts";
import { expandResult } from "./expand_result.ts";
import { mean } from "./mean.ts";
import { floatOperand, fold, planReduction, type ReductionOptions, type ReductionPlan } from "./reduce.ts";

/**
 * Options of {@link variance}, {@link std} and {@link varMean}: the axes, whether they stay as size 1, and the
 * correction.
 */
export interface VarianceOptions extends ReductionOptions {
  /**
   * What is taken from the number of elements before it divides: 1 (the default) for a sample, 0 for the whole
   * population.
   */
  correction?: number | undefined;
}

/**
 * The variance over axes: Σ (x − mean)² / max(0, n − correction), in one pass. NaN of nothing.
 *
 * @example
 * variance(tensor([1, 2, 4]), { correction: 0 }); // float32 1.5555556
 *
 * @throws {DTypeError} for integers and bools. @throws {ShapeError} for an axis out of range, or named twice.
 */
export function variance<D extends DType>(x: Tensor<D>, options: VarianceOptions = {}): Tensor<D> {
  const { correction = 1 } = options;
  const input = floatOperand("var", x, undefined);
  const plan = planReduction("var", input, options);
  const output = fold("var", input, plan, input.dtype, correction);
  record("var", [input], [output], [input], ([gradient], [saved]) => {
    const scaled = mul(gradient!, 2 / freedom(plan, correction)) as Tensor;
    return [mul(expandResult(scaled, plan, saved!.shape), centred(saved!, plan))];
  });
  return output as Tensor<D>;
}
variance.method = "same" as const;

export { variance as var };

/**
 * The standard deviation over axes: the root of the {@link variance}. Its gradient is 0 where all elements are equal.
 *
 * @example
 * std(tensor([[1, 2], [3, 7]]), { dim: 1 }); // float32 [0.70710678, 2.8284271]
 *
 * @throws {DTypeError} for integers and bools. @throws {ShapeError} for an axis out of range, or named twice.
 */
export function std<D extends DType>(x: Tensor<D>, options: VarianceOptions = {}): Tensor<D> {
  const { correction = 1 } = options;
  const input = floatOperand("std", x, undefined);
  const plan = planReduction("std", input, options);
  const output = fold("std", input, plan, input.dtype, correction);
  record("std", [input], [output], [input, output], ([gradient], [saved, result]) => {
    const scaled = div(gradient!, freedom(plan, correction)) as Tensor;
    const derivative = dividedWhereNotZero(scaled, result!);
    return [mul(expandResult(derivative, plan, saved!.shape), centred(saved!, plan))];
  });
  return output as Tensor<D>;
}
std.method = "same" as const;

/** What {@link varMean} returns: both of the shape that the reduction leaves. */
export interface VarianceAndMean<D extends DType> {
  readonly variance: Tensor<D>;
  readonly mean: Tensor<D>;
}

/** The {@link variance} and the mean over the same axes. */
export const varMean = <D extends DType>(x: Tensor<D>, options: VarianceOptions = {}): VarianceAndMean<D> => {
  planReduction("varMean", floatOperand("varMean", x, undefined), options); // its errors name this operation
  const { dim, keepdim } = options;
  return { variance: variance(x, options), mean: mean(x, { dim, keepdim }) as Tensor<D> };
};
varMean.method = "own" as const;

const freedom = ({ count }: ReductionPlan, correction: number): number => Math.max(0, count - correction);

const centred = (x: Tensor, { axes }: ReductionPlan): Tensor =>
  axes.length === 0 ? sub(x, x) : sub(x, mean(x, { dim: axes, keepdim: true }) as Tensor);
