import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { hardtanhAs } from "./hardtanh.ts";

/**
 * min(max(x, 0), 6) for each element. The gradient at 0 and 6 is 0.
 *
 * @example
 * relu6(tensor([-1, 3, 8])); // float32 [0, 3, 6]
 *
 * @throws {DTypeError} for bools.
 */
export function relu6<D extends DType>(x: Tensor<D>): Tensor<D> {
  return hardtanhAs("relu6", x, { minVal: 0, maxVal: 6 });
}
relu6.method = "same" as const;
