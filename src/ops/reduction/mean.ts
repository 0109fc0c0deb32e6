import { record } from "../../autograd/record.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { div } from "../elementwise/division.ts";
import { expandResult } from "./expand_result.ts";
import { floatOperand, fold, planReduction, type ReductionArguments } from "./reduce.ts";
import { foldParameters, type SumOptions } from "./sum.ts";

/**
 * Computes the arithmetic mean over axes. It is NaN if there are no elements.
 *
 * @example
 * mean(tensor([[1, 2], [3, 5]]), { dim: 0 }); // float32 [2, 3.5]
 *
 * @throws {DTypeError} for integers and bools without a float `dtype`.
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function mean<D extends DType, E extends DType = D>(
  x: Tensor<D>,
  ...options: ReductionArguments<SumOptions<E>>
): Tensor<E>;
export function mean(...values: unknown[]): Tensor {
  const { x, dim, keepdim, dtype } = meanParameters(values);
  const input = floatOperand("mean", x, dtype, true);
  const plan = planReduction("mean", input, { dim, keepdim });
  const output = fold("mean", input, plan, input.dtype);
  const whole = input.shape;
  record("mean", [input], [output], [], ([gradient]) => [expandResult(div(gradient, plan.count), plan, whole)]);
  return output;
}
const meanParameters = foldParameters("mean");
mean.method = "averaged" as const;
