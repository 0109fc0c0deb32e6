import type { Tensor } from "../../tensor/tensor.ts";
import { mul, sub } from "./arithmetic.ts";
import { bessel } from "./bessel.reference.ts";
import { eq } from "./comparison.ts";
import { defineUnary } from "./define.ts";
import { div } from "./division.ts";
import type { FloatOperation } from "./types.ts";
import { where } from "./where.ts";

/**
 * Computes I₀(x) = Σ (x/2)²ᵏ/(k!)², the modified Bessel function of the first kind of order 0, for each element. The
 * gradient is {@link i1}. @see {@link exp}
 *
 * @example
 * i0(tensor([0, 1, 2])); // float32 [1, 1.26607, 2.27959]
 */
export const i0: FloatOperation = defineUnary("i0", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => bessel(0, x) },
  gradient: (g, x) => mul(g, i1(x)),
});

/**
 * Computes I₁(x) = Σ (x/2)²ᵏ⁺¹/(k!(k + 1)!), the modified Bessel function of the first kind of order 1, for each
 * element. The gradient is I₀(x) − I₁(x)/x, which is ½ at 0. @see {@link exp}
 *
 * @example
 * i1(tensor([0, 1, 2])); // float32 [0, 0.565159, 1.59064]
 */
export const i1: FloatOperation = defineUnary("i1", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => bessel(1, x) },
  gradient: (g, x) => mul(g, sub(i0(x), perArgument(x))),
});

/** Computes I₁(x)/x, which is ½ at 0. */
function perArgument(x: Tensor): Tensor {
  const isZero = eq(x, 0);
  const divisor = where(isZero, 1, x);
  return where(isZero, 0.5, div(i1(divisor), divisor));
}
