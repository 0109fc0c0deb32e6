import { record } from "../../autograd/record.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { productOfOthers } from "../scan/product_of_others.ts";
import { expandResult } from "./expand_result.ts";
import { planReduction, type ReductionArguments } from "./reduce.ts";
import { accumulate, foldParameters, type SumOf, type SumOptions } from "./sum.ts";

/**
 * Computes the product over axes. Integers and bools are multiplied in int64, which wraps around. The product of no
 * elements is 1. The gradient is correct even if elements are 0.
 *
 * @example
 * prod(tensor([[1, 2], [3, 4]]), { dim: 1 }); // float32 [2, 12]
 *
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function prod<D extends DType, E extends DType = SumOf<D>>(
  x: Tensor<D>,
  ...options: ReductionArguments<SumOptions<E>>
): Tensor<E>;
export function prod(...values: unknown[]): Tensor {
  const { x, dim, keepdim, dtype } = prodParameters(values);
  const plan = planReduction("prod", x, { dim, keepdim });
  const { input, output } = accumulate("prod", x, plan, dtype);
  record("prod", [input], [output], [input], ([gradient], [saved]) => [
    mul(expandResult(gradient, plan, saved.shape), productOfOthers(saved, plan.axes)),
  ]);
  return toDType(output, dtype ?? output.dtype);
}
const prodParameters = foldParameters("prod");
prod.method = "summed" as const;
