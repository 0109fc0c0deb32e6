import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type FloatOf, unary } from "../elementwise/unary.ts";

/**
 * x/(1 + e⁻ˣ) for each element, also called swish; integers become float32.
 *
 * @example
 * silu(tensor([-1, 0, 1])); // float32 [-0.268941, 0, 0.731059]
 */
export const silu = <D extends DType>(x: Tensor<D>): Tensor<FloatOf<D>> => unary("silu", x) as Tensor<FloatOf<D>>;
