import type { Tensor } from "../../tensor/tensor.ts";
import { mul, neg, sub } from "./arithmetic.ts";
import { defineBinary } from "./define.ts";
import { exp, exp2 } from "./exponential.ts";
import type { BinaryOperation } from "./types.ts";

/**
 * Computes ln(eᵃ + eᵇ) for each pair of elements, with broadcasting and without overflow. Integers become float32.
 * @see {@link add}
 *
 * The gradients are eᵃ/(eᵃ + eᵇ) and eᵇ/(eᵃ + eᵇ), which are NaN if both operands are the same infinity, as in PyTorch.
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

/** Computes eᵃ/(eᵃ + eᵇ) = 1/(1 + eᵇ⁻ᵃ) as the exponential of a number that is at most 0. */
const share = (a: Tensor, b: Tensor): Tensor => exp(neg(logaddexp(0, sub(b, a))));

/**
 * Computes log₂(2ᵃ + 2ᵇ) for each pair of elements, with broadcasting and without overflow. Integers become float32.
 * The gradients are 2ᵃ/(2ᵃ + 2ᵇ) and 2ᵇ/(2ᵃ + 2ᵇ), as for {@link logaddexp}. @see {@link add}
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

/** Computes 2ᵃ/(2ᵃ + 2ᵇ), like {@link share}. */
const share2 = (a: Tensor, b: Tensor): Tensor => exp2(neg(logaddexp2(0, sub(b, a))));
