/** Standard random numbers, the same on every backend. None has a gradient. */
import { rand, randn } from "../ops/index.ts";
import type { Generator } from "../random/generator.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { neg, sub } from "./arithmetic.ts";
import { portableLog } from "./portable.ts";

/** The dtype of the numbers, and the generator. */
export interface Source {
  readonly dtype: "float32" | "float64";
  readonly generator: Generator | undefined;
}

/** Draws uniform numbers in [0, 1). */
export const uniform = (shape: Shape, { dtype, generator }: Source): Tensor =>
  rand([...shape], { dtype, ...(generator && { generator }) });

/** Draws uniform numbers in (0, 1]. */
export const uniformAboveZero = (shape: Shape, source: Source): Tensor => sub(1, uniform(shape, source));

/** Draws normal numbers with mean 0 and variance 1. */
export const normal = (shape: Shape, { dtype, generator }: Source): Tensor =>
  randn([...shape], { dtype, ...(generator && { generator }) });

/** Draws exponential numbers with mean 1. */
export const exponential = (shape: Shape, source: Source): Tensor =>
  neg(portableLog(uniformAboveZero(shape, source), { isBelowTwo: true }));
