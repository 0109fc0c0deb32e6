import type { Tensor } from "../../tensor/tensor.ts";
import { mul, neg, sub } from "./arithmetic.ts";
import { defineBinary } from "./define.ts";
import { exp, exp2 } from "./exponential.ts";
import type { BinaryOperation } from "./types.ts";

/**
 * ln(eᵃ + eᵇ) for each pair of elements, broadcast, without an exponential that overflows; integers become float32.
 * @see {@link add}
 *
 * The gradients are eᵃ/(eᵃ + eᵇ) and eᵇ/(eᵃ + eᵇ), which are NaN where both are the same infinity, as in PyTorch.
 *
 * @example
 * logaddexp(tensor([0, 1000]), tensor([0, 1000])); // float32 [0.693147, 1000.69]
 */
export const logaddexp: BinaryOperation = defineBinary("logaddexp", {
  takes: "floats",
  saves: "operands",
  reference: {
    float: (a, b) => Math.max(a, b) + Math.log1p(Math.exp(a === b ? 0 : -Math.abs(a - b))),
  },
  gradient: (g, a, b, needs) => [needs[0] ? mul(g, share(a, b)) : null, needs[1] ? mul(g, share(b, a)) : null],
});

/** eᵃ/(eᵃ + eᵇ) = 1/(1 + eᵇ⁻ᵃ), as an exponential of something that is not above 0. */
const share = (a: Tensor, b: Tensor): Tensor => exp(neg(logaddexp(0, sub(b, a))));

/**
 * log₂(2ᵃ + 2ᵇ) for each pair of elements, broadcast, without a power that overflows; integers become float32. The
 * gradients are 2ᵃ/(2ᵃ + 2ᵇ) and 2ᵇ/(2ᵃ + 2ᵇ), as those of {@link logaddexp}. @see {@link add}
 *
 * @example
 * logaddexp2(tensor([0, 1000]), tensor([0, 1000])); // float32 [1, 1001]
 */
export const logaddexp2: BinaryOperation = defineBinary("logaddexp2", {
  takes: "floats",
  saves: "operands",
  reference: {
    float: (a, b) => Math.max(a, b) + Math.log1p(2 ** (a === b ? 0 : -Math.abs(a - b))) * Math.LOG2E,
  },
  gradient: (g, a, b, needs) => [needs[0] ? mul(g, share2(a, b)) : null, needs[1] ? mul(g, share2(b, a)) : null],
});

/** 2ᵃ/(2ᵃ + 2ᵇ), as {@link share}. */
const share2 = (a: Tensor, b: Tensor): Tensor => exp2(neg(logaddexp2(0, sub(b, a))));
