import { aNumber, choice } from "../../core/kinds.ts";
import { operand, optional, parameters } from "../../core/parameters.ts";
import { keysOf } from "../../core/records.ts";

/** The gain of each nonlinearity, from its slope. */
const gains = {
  linear: () => 1,
  conv1d: () => 1,
  conv2d: () => 1,
  conv3d: () => 1,
  convTranspose1d: () => 1,
  convTranspose2d: () => 1,
  convTranspose3d: () => 1,
  sigmoid: () => 1,
  tanh: () => 5 / 3,
  relu: () => Math.SQRT2,
  leakyRelu: (slope: number) => Math.sqrt(2 / (1 + slope ** 2)),
  selu: () => 3 / 4,
} as const;

/** A function whose gain {@link calculateGain} knows. */
export type GainNonlinearity = keyof typeof gains;

/** @internal */
export const aNonlinearity = choice(...keysOf(gains));

/** @internal Returns the gain for checked arguments. */
export const gainOf = (nonlinearity: GainNonlinearity, slope: number): number => gains[nonlinearity](slope);

/**
 * Returns the factor of the standard deviation that keeps the variance of activations after a nonlinearity: 1 for
 * linear layers and sigmoid, 5/3 for tanh, √2 for ReLU, √(2 / (1 + slope²)) for leaky ReLU, 3/4 for SELU.
 *
 * @param param the slope of leaky ReLU; default 0.01
 *
 * @example
 * nn.init.calculateGain("leakyRelu", 0.2); // 1.3867504905630728
 */
export function calculateGain(nonlinearity: GainNonlinearity, param?: number): number;
export function calculateGain(...values: unknown[]): number {
  const { nonlinearity, param } = gainParameters(values);
  return gainOf(nonlinearity, param);
}
const gainParameters = parameters("init.calculateGain", {
  nonlinearity: operand(aNonlinearity),
  param: optional(aNumber({ holds: Number.isFinite, expected: "a finite number" }), 0.01),
});
