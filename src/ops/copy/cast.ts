import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { copyPrimitive } from "./copy.ts";

/**
 * The elements in another dtype; the tensor itself where it has that dtype already. Floats round to the nearest, ties to even; a float
 * becomes an integer by truncation, out of range the nearest that there is and NaN 0; integers wrap around; bool is x ≠ 0.
 */
export function toDType<D extends DType>(x: Tensor, dtype: D): Tensor<D> {
  if (x.dtype === dtype) return x as Tensor<D>;
  const output = execute(copyPrimitive, [x], x.shape, dtype, undefined);
  const from = x.dtype;
  record("toDType", [x], [output], [], ([gradient]) => [toDType(gradient!, from)]);
  return output;
}
