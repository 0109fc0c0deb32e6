import { isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { conjugate, partOf } from "../complex/part.ts";
import { abs, add, mul, reciprocal, sign, sub } from "../elementwise/arithmetic.ts";
import { defineUnary } from "../elementwise/define.ts";
import type { FloatOperation } from "../elementwise/types.ts";

/**
 * Computes x/(1 + |x|) for each element. Integers become float32. NaN at ±∞.
 *
 * @example
 * softsign(tensor([-3, 0, 1])); // float32 [-0.75, 0, 0.5]
 */
export const softsign: FloatOperation = defineUnary("softsign", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => x / (1 + Math.abs(x)) },
  complex: "nonholomorphic",
  gradient(g, x) {
    if (isComplex(x.dtype)) return complexGradient(g, x);
    const share = reciprocal(add(abs(x), 1)); // multiplied twice, since its square may underflow in float16
    return mul(mul(g, share), share);
  },
});

/** g / (1 + |x|) − x / |x| · Re(conj(g) x) / (1 + |x|)². */
function complexGradient(g: Tensor, x: Tensor): Tensor {
  const share = reciprocal(add(abs(x), 1));
  const along = partOf("real", mul(conjugate(g), x), 0);
  return sub(mul(g, share), mul(sign(x), mul(along, mul(share, share))));
}
