/** Bessel functions of the first and second kind, J and Y, and modified ones of the second kind, K. */
import type { Tensor } from "../../tensor/tensor.ts";
import { add, mul, neg, sub } from "./arithmetic.ts";
import { besselJ, besselK, besselY } from "./bessel_kinds.reference.ts";
import { eq } from "./comparison.ts";
import { defineUnary } from "./define.ts";
import { div } from "./division.ts";
import type { FloatOperation } from "./types.ts";
import { where } from "./where.ts";

const times = (a: Tensor, b: Tensor | number): Tensor => mul(a, b);

/** f(x) / x. */
const perArgument = (y: Tensor, x: Tensor): Tensor => div(y, x);

/**
 * Computes J₀(x), the Bessel function of the first kind of order 0, for each element. The gradient is −J₁(x). @see
 * {@link exp}
 *
 * @example
 * besselJ0(tensor([0, 1, 10])); // float32 [1, 0.765198, -0.245936]
 */
export const besselJ0: FloatOperation = defineUnary("besselJ0", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => besselJ(0, x) },
  gradient: (g, x) => neg(times(g, besselJ1(x))),
});

/**
 * Computes J₁(x), the Bessel function of the first kind of order 1, for each element. The gradient is J₀(x) − J₁(x)/x,
 * which is ½ at 0. @see {@link exp}
 *
 * @example
 * besselJ1(tensor([0, 1, 10])); // float32 [0, 0.440051, 0.0434727]
 */
export const besselJ1: FloatOperation = defineUnary("besselJ1", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => besselJ(1, x) },
  gradient(g, x) {
    const isZero = eq(x, 0);
    const divisor = where(isZero, 1, x);
    const ratio = where(isZero, 0.5, perArgument(besselJ1(divisor), divisor));
    return times(g, sub(besselJ0(x), ratio));
  },
});

/**
 * Computes Y₀(x), the Bessel function of the second kind of order 0, for each element: −∞ at 0, and NaN below. The
 * gradient is −Y₁(x). @see {@link exp}
 *
 * @example
 * besselY0(tensor([1, 10])); // float32 [0.0882570, 0.0556712]
 */
export const besselY0: FloatOperation = defineUnary("besselY0", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => besselY(0, x) },
  gradient: (g, x) => neg(times(g, besselY1(x))),
});

/**
 * Computes Y₁(x), the Bessel function of the second kind of order 1, for each element: −∞ at 0, and NaN below. The
 * gradient is Y₀(x) − Y₁(x)/x. @see {@link exp}
 *
 * @example
 * besselY1(tensor([1, 10])); // float32 [-0.781213, 0.249015]
 */
export const besselY1: FloatOperation = defineUnary("besselY1", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => besselY(1, x) },
  gradient: (g, x) => times(g, sub(besselY0(x), perArgument(besselY1(x), x))),
});

/**
 * Computes K₀(x), the modified Bessel function of the second kind of order 0, for each element: ∞ at 0, and NaN below.
 * The gradient is −K₁(x). @see {@link exp}
 *
 * @example
 * modifiedBesselK0(tensor([1, 2])); // float32 [0.421024, 0.113894]
 */
export const modifiedBesselK0: FloatOperation = defineUnary("modifiedBesselK0", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => besselK(0, x, false) },
  gradient: (g, x) => neg(times(g, modifiedBesselK1(x))),
});

/**
 * Computes K₁(x), the modified Bessel function of the second kind of order 1, for each element: ∞ at 0, and NaN below.
 * The gradient is −K₀(x) − K₁(x)/x. @see {@link exp}
 *
 * @example
 * modifiedBesselK1(tensor([1, 2])); // float32 [0.601907, 0.139866]
 */
export const modifiedBesselK1: FloatOperation = defineUnary("modifiedBesselK1", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => besselK(1, x, false) },
  gradient: (g, x) => neg(times(g, add(modifiedBesselK0(x), perArgument(modifiedBesselK1(x), x)))),
});

/**
 * Computes eˣ K₀(x) for each element, which does not underflow. The gradient is eˣ (K₀(x) − K₁(x)). @see {@link exp}
 *
 * @example
 * scaledModifiedBesselK0(tensor([1, 1000])); // float32 [1.14446, 0.0396282]
 */
export const scaledModifiedBesselK0: FloatOperation = defineUnary("scaledModifiedBesselK0", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => besselK(0, x, true) },
  gradient: (g, x) => times(g, sub(scaledModifiedBesselK0(x), scaledModifiedBesselK1(x))),
});

/**
 * Computes eˣ K₁(x) for each element, which does not underflow. The gradient is eˣ (K₁(x) (1 − 1/x) − K₀(x)). @see
 * {@link exp}
 *
 * @example
 * scaledModifiedBesselK1(tensor([1, 1000])); // float32 [1.63615, 0.0396480]
 */
export const scaledModifiedBesselK1: FloatOperation = defineUnary("scaledModifiedBesselK1", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => besselK(1, x, true) },
  gradient(g, x) {
    const y = scaledModifiedBesselK1(x);
    return times(g, sub(sub(y, perArgument(y, x)), scaledModifiedBesselK0(x)));
  },
});
