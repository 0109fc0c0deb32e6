import { named } from "../../backend/dispatch.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { mul } from "../elementwise/binary.ts";
import { operandDType } from "../elementwise/operands.ts";
import { type FloatOf, sigmoid } from "../elementwise/unary.ts";

/**
 * x/(1 + e⁻ˣ) for each element, also called swish; integers become float32.
 *
 * @example
 * silu(tensor([-1, 0, 1])); // float32 [-0.268941, 0, 0.731059]
 */
export function silu<D extends DType>(x: Tensor<D>): Tensor<FloatOf<D>> {
  x.checkAlive("silu");
  const input = toDType(x, operandDType("silu", x.dtype, "floats"));
  return named("silu", () => mul(input, sigmoid(input))) as Tensor<FloatOf<D>>;
}
