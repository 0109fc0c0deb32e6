import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { type DType, isComplex, isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { partOf } from "../complex/part.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, sub } from "../elementwise/arithmetic.ts";
import { eq } from "../elementwise/comparison.ts";
import { div } from "../elementwise/division.ts";
import { exp } from "../elementwise/exponential.ts";
import { log } from "../elementwise/logarithm.ts";
import { isfinite } from "../elementwise/predicates.ts";
import type { FloatOf } from "../elementwise/types.ts";
import { where } from "../elementwise/where.ts";
import { reshape } from "../view/reshape.ts";
import { expandResult } from "./expand_result.ts";
import { amax } from "./extrema.ts";
import { fold, planReduction, type ReductionArguments, type ReductionPlan, reductionParameters } from "./reduce.ts";
import { sum } from "./sum.ts";

/**
 * Computes log Σ exp(x) over axes, without overflow, in one pass. Integers become float32. The result is −∞ if there
 * are no elements.
 *
 * @example
 * logsumexp(tensor([1000, 1000])); // float32 1000.6931
 *
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function logsumexp<D extends DType>(x: Tensor<D>, ...options: ReductionArguments): Tensor<FloatOf<D>>;
export function logsumexp(...values: unknown[]): Tensor {
  const { x, dim, keepdim } = logsumexpParameters(values);
  if (isComplex(x.dtype)) return logOfComplexSum(x, { dim, keepdim });
  const input: Tensor = isFloat(x.dtype) ? x : toDType(x, "float32");
  const plan = planReduction("logsumexp", input, { dim, keepdim });
  const output = fold("logsumexp", input, plan, input.dtype);
  record("logsumexp", [input], [output], [input, output], ([gradient], [saved, result]) => {
    const { shape } = saved;
    const shift = noGrad(() => expandResult(result, plan, shape));
    const parts = exp(sub(saved, shift));
    const factor = div(reshape(gradient, plan.kept), sumOf(parts, plan));
    return [mul(parts, expandResult(factor, plan, shape))];
  });
  return output;
}
const logsumexpParameters = reductionParameters("logsumexp");
logsumexp.method = "float" as const;

/** ln Σ eᶻ = m + ln Σ eᶻ⁻ᵐ with the largest real part m. */
function logOfComplexSum(x: Tensor, { dim, keepdim }: Parameters<typeof planReduction>[2]): Tensor {
  const re = partOf("real", x, 0);
  if (re.size === 0) return log(sum(exp(x), { dim, keepdim }));
  const most = noGrad(() => {
    const found = amax(re, { dim, keepdim: true });
    return where(isfinite(found), found, 0);
  });
  const sums = log(sum(exp(sub(x, most)), { dim, keepdim }));
  return add(sums, reshape(most, sums.shape));
}

/**
 * The sum of the parts. Dividing by it gives accurate shares: for large elements, rounding the logarithm costs far more
 * accuracy than rounding the parts. The sum is replaced by 1 where it is NaN, which happens if an element is ∞; finite
 * elements then have a share of 0.
 */
function sumOf(parts: Tensor, { axes }: ReductionPlan): Tensor {
  const sums = sum(parts, { dim: axes, keepdim: true });
  return where(eq(sums, sums), sums, 1);
}
