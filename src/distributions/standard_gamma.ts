/** Samples of the gamma distribution of scale 1, and of Poisson and other distributions that reject proposals. */
import { noGrad } from "../autograd/modes.ts";
import { record } from "../autograd/record.ts";
import { any, ones } from "../ops/index.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { add, and, constant, div, expandTo, gt, lt, mul, not, sqrt, square, sub, where } from "./arithmetic.ts";
import { logGammaDerivative } from "./gamma_gradient.ts";
import { normal, type Source, uniformAboveZero } from "./noise.ts";
import { differentiableExp, portableLog } from "./portable.ts";

/** A proposal for every element, and a mask of the accepted ones. */
export interface Proposal {
  readonly value: Tensor;
  readonly isAccepted: Tensor;
}

/**
 * The maximum number of rounds. With valid parameters no element reaches it, since each round accepts more than half of
 * the elements.
 */
const MOST_ROUNDS = 128;

/**
 * Draws proposals until every element has accepted one. Each round draws numbers for all elements, so they do not
 * depend on which elements are done. Elements that accept none are NaN, such as those with NaN as a parameter.
 */
export function firstAccepted(shape: Shape, like: Tensor, propose: () => Proposal): Tensor {
  return noGrad(() =>
    tidy(() => {
      let result = constant(Number.NaN, like, shape);
      let isOpen: Tensor = ones(shape, { dtype: "bool" });
      for (let round = 0; round < MOST_ROUNDS; round++) {
        const { value, isAccepted } = propose();
        result = where(and(isOpen, isAccepted), value, result);
        isOpen = and(isOpen, not(isAccepted));
        if (any(isOpen).item() !== true) break;
      }
      return result;
    }),
  );
}

/**
 * Draws ln G for gamma numbers G of shape `concentration`. It is finite even if G would be 0. Shapes below 1 use G(a) =
 * G(a + 1) · U^(1/a). The gradient is implicit: see {@link logGammaDerivative}. Source: G. Marsaglia and W. Tsang, "A
 * simple method for generating gamma variables", 2000.
 */
export function logStandardGamma(concentration: Tensor, shape: Shape, source: Source): Tensor {
  const a = expandTo(concentration, shape);
  const logarithm = noGrad(() =>
    tidy(() => {
      const isBelowOne = lt(a, 1);
      const d = sub(where(isBelowOne, add(a, 1), a), 1 / 3);
      const c = div(1 / 3, sqrt(d));
      const cubes = firstAccepted(shape, a, () => {
        const x = normal(shape, source);
        const u = uniformAboveZero(shape, source);
        const root = add(mul(c, x), 1);
        const isInside = gt(root, 0);
        const cube = where(isInside, mul(root, square(root)), 1);
        const logCube = portableLog(cube);
        const bound = add(mul(square(x), 0.5), mul(d, add(sub(1, cube), logCube)));
        const isAccepted = lt(portableLog(u, { isBelowTwo: true }), bound);
        return { value: logCube, isAccepted: and(isInside, isAccepted) };
      });
      const boost = portableLog(uniformAboveZero(shape, source), { isBelowTwo: true });
      const whole = add(portableLog(d), cubes);
      return where(isBelowOne, add(whole, div(boost, a)), whole);
    }),
  );
  record("standardGamma", [a], [logarithm], [a, logarithm], ([g], [shapes, logs]) => [
    mul(g, logGammaDerivative(shapes, differentiableExp(logs), logs)),
  ]);
  return logarithm;
}

/** Draws gamma numbers of shape `concentration`, with implicit gradients. */
export const standardGamma = (concentration: Tensor, shape: Shape, source: Source): Tensor =>
  differentiableExp(logStandardGamma(concentration, shape, source));
