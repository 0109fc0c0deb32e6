/** Activations x·S(x) and their derivatives in float64, with a gate S that rises from 0 to 1. */
import { erfc } from "./erf.reference.ts";

/** S and its derivative, both computed without cancellation. */
export interface Share {
  readonly value: (x: number) => number;
  readonly derivative: (x: number) => number;
}

/** Φ, the cumulative distribution function of the normal distribution. */
export const normalShare: Share = {
  value: (x) => erfc(-x * Math.SQRT1_2) / 2,
  derivative: (x) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI),
};

/** 1/(1 + e⁻ˣ) */
export const logisticShare: Share = {
  value: logistic,
  derivative: (x) => logistic(x) * logistic(-x),
};

const tanhFactor = Math.sqrt(8 / Math.PI);
const tanhArgument = (x: number): number => tanhFactor * (x + 0.044715 * x ** 3);

/** (1 + tanh u)/2 is the logistic function of 2u. */
export const tanhShare: Share = {
  value: (x) => logistic(tanhArgument(x)),
  derivative: (x) => logisticShare.derivative(tanhArgument(x)) * tanhFactor * (1 + 3 * 0.044715 * x * x),
};

/** Computes 1/(1 + e⁻ˣ) without overflow. */
export function logistic(x: number): number {
  const e = Math.exp(-Math.abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

/** Computes x·S(x), with the limit 0 at −∞. */
export const gated = ({ value }: Share, x: number): number => (x === Number.NEGATIVE_INFINITY ? -0 : x * value(x));

/** Computes S(x) + x·S′(x), with the limits 0 and 1 at −∞ and ∞. */
export const gatedDerivative = ({ value, derivative }: Share, x: number): number => {
  const slope = derivative(x);
  return value(x) + (slope === 0 || Math.abs(x) === Number.POSITIVE_INFINITY ? 0 : x * slope);
};
