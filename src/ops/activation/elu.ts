import { underName } from "../../backend/dispatch.ts";
import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { le } from "../elementwise/comparison.ts";
import { defineTernary, type Ternary } from "../elementwise/define.ts";
import { exp } from "../elementwise/exponential.ts";
import { operandDType, scalarTensor } from "../elementwise/operands.ts";
import type { FloatOf } from "../elementwise/types.ts";
import { where } from "../elementwise/where.ts";

/** Computes x if it is above 0, else alpha·(exp(rate·x) − 1). */
const eluOf: Ternary = defineTernary("elu", {
  reference: { float: (x, alpha, rate) => (x > 0 ? x : alpha * Math.expm1(rate * x)) },
  gradient(g, [x, alpha, rate]) {
    const isBelow = le(x, 0); // false for NaN, so that the gradient of NaN passes, as in PyTorch
    const below = where(isBelow, x, 0); // exp of a large x would be infinite, and 0 · ∞ is NaN
    return [where(isBelow, mul(g, mul(mul(alpha, rate), exp(mul(below, rate)))), g), null, null];
  },
});

/** Computes scale · x if x is above 0, else scale · alpha·(exp(rate·x) − 1); in float32 for 16-bit floats. */
export function scaledElu<D extends DType>(
  operation: string,
  x: Tensor<D>,
  { alpha, rate = 1, scale = 1 }: { readonly alpha: number; readonly rate?: number; readonly scale?: number },
): Tensor<FloatOf<D>> {
  x.checkAlive(operation);
  const dtype = operandDType(operation, x.dtype, "floats");
  // small whole numbers are exact in every dtype
  const isExact = scale === 1 && [alpha, rate].every((value) => Number.isInteger(value) && Math.abs(value) <= 256);
  const computed = isExact ? dtype : accumulationDType(dtype);
  return underName(operation, () => {
    const result = eluOf([toDType(x, computed), scalarTensor(alpha, computed), scalarTensor(rate, computed)]);
    return toDType(scale === 1 ? result : mul(result, scale), dtype) as Tensor<FloatOf<D>>;
  });
}

/** Options of {@link elu}. */
export interface EluOptions {
  /** Scale of the negative part, whose limit at −∞ is −alpha. Default 1. */
  alpha?: number | undefined;
}

/** Options of {@link elu}, named or positional. */
export type EluArguments = Given<EluOptions, ["alpha"]>;

/**
 * Computes x for each element above 0, and alpha·(eˣ − 1) for the others. Integers become float32. The gradient at 0 is
 * alpha.
 *
 * Source: D. Clevert et al., "Fast and accurate deep network learning by exponential linear units (ELUs)", 2015.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * elu(tensor([-1, 0, 2])); // float32 [-0.632121, 0, 2]
 */
export function elu<D extends DType>(x: Tensor<D>, ...options: EluArguments): Tensor<FloatOf<D>>;
export function elu(...values: unknown[]): Tensor {
  const { x, alpha } = readElu(values);
  return scaledElu("elu", x, { alpha });
}
elu.method = "float" as const;

/** @internal */
export const eluParameters = { x: operand(aTensor), alpha: optional(someNumber, 1) } as const;
const readElu = parameters("elu", eluParameters);
