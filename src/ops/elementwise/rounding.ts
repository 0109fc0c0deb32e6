import { defineUnary } from "./define.ts";
import { zerosLike } from "./operands.ts";
import type { UnaryOperation } from "./types.ts";

const itself = (x: bigint): bigint => x;

/**
 * The largest whole number ≤ x for each element. The gradient is 0. @see {@link neg}
 *
 * @example
 * floor(tensor([-1.5, 1.5])); // float32 [-2, 1]
 */
export const floor: UnaryOperation = defineUnary("floor", {
  takes: "numbers",
  reference: { float: Math.floor, integer: itself },
  gradient: zerosLike,
});

/**
 * The smallest whole number ≥ x for each element. The gradient is 0. @see {@link neg}
 *
 * @example
 * ceil(tensor([-1.5, 1.5])); // float32 [-1, 2]
 */
export const ceil: UnaryOperation = defineUnary("ceil", {
  takes: "numbers",
  reference: { float: Math.ceil, integer: itself },
  gradient: zerosLike,
});

/**
 * The nearest whole number for each element, halves to the even one. The gradient is 0. @see {@link neg}
 *
 * @example
 * round(tensor([0.5, 1.5, 2.5])); // float32 [0, 2, 2]
 */
export const round: UnaryOperation = defineUnary("round", {
  takes: "numbers",
  reference: { float: roundHalfToEven, integer: itself },
  gradient: zerosLike,
});

/**
 * x without its fraction for each element, towards 0. The gradient is 0. @see {@link neg}
 *
 * @example
 * trunc(tensor([-1.5, 1.5])); // float32 [-1, 1]
 */
export const trunc: UnaryOperation = defineUnary("trunc", {
  takes: "numbers",
  reference: { float: Math.trunc, integer: itself },
  gradient: zerosLike,
});

/**
 * x − trunc(x) for each element, with the sign of x; 0 for integers, NaN for infinities. The gradient is 1.
 *
 * @example
 * frac(tensor([-1.5, 1.25])); // float32 [-0.5, 0.25]
 *
 * @throws {DTypeError} for bools.
 */
export const frac: UnaryOperation = defineUnary("frac", {
  takes: "numbers",
  reference: { float: (x) => x - Math.trunc(x), integer: () => 0n },
  gradient: (g) => g,
});

function roundHalfToEven(x: number): number {
  const below = Math.floor(x);
  const isUp = x - below > 0.5 || (x - below === 0.5 && below % 2 !== 0);
  return isUp ? below + 1 : below;
}
