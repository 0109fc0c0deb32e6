import { underName } from "../../backend/dispatch.ts";
import { aNumber } from "../../core/kinds.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add, sub } from "./arithmetic.ts";
import { lgamma } from "./gamma.ts";
import type { FloatOf } from "./types.ts";

const MOST = 1000;
const aDimension = aNumber({
  holds: (p) => Number.isInteger(p) && p >= 1 && p <= MOST,
  expected: `a whole number from 1 to ${MOST}`,
});

/**
 * Computes the logarithm of the multivariate gamma function of dimension p for each element: p (p − 1)/4 · ln π + Σ ln
 * |Γ(x − j/2)| over j from 0 to p − 1. It is defined for x above (p − 1)/2. Integers become float32.
 *
 * @param p the dimension, from 1 to 1000; dimension 1 gives `lgamma`
 * @returns a tensor of x's shape
 *
 * @example
 * mvlgamma(tensor([2, 3]), 2); // float32 [0.451583, 1.550195]
 *
 * @throws {ArgumentError} for any other p.
 */
export function mvlgamma<D extends DType>(x: Tensor<D>, p: number): Tensor<FloatOf<D>>;
export function mvlgamma(...values: unknown[]): Tensor {
  const { x, p } = mvlgammaParameters(values);
  return underName("mvlgamma", () =>
    tidy(() => {
      const dtype = isFloat(x.dtype) ? x.dtype : "float32";
      const wide = toDType(x, accumulationDType(dtype));
      let sum: Tensor = lgamma(wide);
      for (let j = 1; j < p; j++) sum = add(sum, lgamma(sub(wide, j / 2)));
      return toDType(add(sum, ((p * (p - 1)) / 4) * Math.log(Math.PI)), dtype);
    }),
  );
}
mvlgamma.method = "float" as const;
const mvlgammaParameters = parameters("mvlgamma", { x: operand(aTensor), p: required(aDimension) });
