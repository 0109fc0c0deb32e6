import { operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { hardtanhAs } from "./hardtanh.ts";

/**
 * Computes min(max(x, 0), 6) for each element. The gradient is 0 at 0 and 6.
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * relu6(tensor([-1, 3, 8])); // float32 [0, 3, 6]
 *
 * @throws {DTypeError} for bools.
 */
export function relu6<D extends DType>(x: Tensor<D>): Tensor<D>;
export function relu6(...values: unknown[]): Tensor {
  const { x } = relu6Parameters(values);
  return hardtanhAs("relu6", x, { minVal: 0, maxVal: 6 });
}
relu6.method = "same" as const;
const relu6Parameters = parameters("relu6", { x: operand(aTensor) });
