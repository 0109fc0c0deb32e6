import { record } from "../../autograd/record.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { mul, sub } from "../elementwise/arithmetic.ts";
import { exp } from "../elementwise/exponential.ts";
import type { FloatOf } from "../elementwise/types.ts";
import { expandResult } from "./expand_result.ts";
import { fold, planReduction, type ReductionArguments, reductionParameters } from "./reduce.ts";

/**
 * log Σ exp(x) over axes, without overflow, in one pass; integers become float32. −∞ of nothing.
 *
 * @example
 * logsumexp(tensor([1000, 1000])); // float32 1000.6931
 *
 * @throws {ShapeError} for an axis out of range, or named twice.
 */
export function logsumexp<D extends DType>(x: Tensor<D>, ...options: ReductionArguments): Tensor<FloatOf<D>>;
export function logsumexp(...values: unknown[]): Tensor {
  const { x, dim, keepdim } = logsumexpParameters(values);
  const input: Tensor = isFloat(x.dtype) ? x : toDType(x, "float32");
  const plan = planReduction("logsumexp", input, { dim, keepdim });
  const output = fold("logsumexp", input, plan, input.dtype);
  record("logsumexp", [input], [output], [input, output], ([gradient], [saved, result]) => {
    const whole = saved!.shape;
    return [mul(expandResult(gradient!, plan, whole), exp(sub(saved!, expandResult(result!, plan, whole))))];
  });
  return output;
}
const logsumexpParameters = reductionParameters("logsumexp");
logsumexp.method = "float" as const;
