import { underName } from "../../backend/dispatch.ts";
import { DTypeError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { mul } from "./arithmetic.ts";
import { defineUnary } from "./define.ts";
import { trueDivide } from "./division.ts";
import { zerosLike } from "./operands.ts";
import type { UnaryOperation } from "./types.ts";

const itself = (x: bigint): bigint => x;

/**
 * Rounds each element down to an integer. The gradient is 0. @see {@link neg}
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
 * Rounds each element up to an integer. The gradient is 0. @see {@link neg}
 *
 * @example
 * ceil(tensor([-1.5, 1.5])); // float32 [-1, 2]
 */
export const ceil: UnaryOperation = defineUnary("ceil", {
  takes: "numbers",
  reference: { float: Math.ceil, integer: itself },
  gradient: zerosLike,
});

const wholeNumbers: UnaryOperation = defineUnary("round", {
  isPublic: false, // {@link round} is the public function
  takes: "numbers",
  reference: { float: roundHalfToEven, integer: itself },
  gradient: zerosLike,
});

/** Options of {@link round}. */
export interface RoundOptions {
  /** Number of decimal places to keep; −1 rounds to tens. Default 0. */
  decimals?: number | undefined;
}

/**
 * Rounds each element to the nearest integer, or to the given decimal places; halves round to even. The gradient is 0.
 *
 * @returns a tensor of x's shape and dtype
 * @see {@link neg}
 *
 * @example
 * round(tensor([0.5, 1.5, 2.5])); // float32 [0, 2, 2]
 * round(tensor([1.256, -0.124]), { decimals: 2 }); // float32 [1.26, -0.12]
 *
 * @throws {DTypeError} for bools, and for integers with decimals other than 0.
 */
export function round<D extends DType>(x: Tensor<D>, options?: RoundOptions): Tensor<D>;
export function round(x: Tensor, ...options: unknown[]): Tensor {
  if (options.length === 0 && Tensor.isTensor(x)) return wholeNumbers(x);
  const { x: input, decimals } = roundParameters([x, ...options]);
  if (decimals === 0) return wholeNumbers(input);
  if (!isFloat(input.dtype))
    throw new DTypeError(
      "round",
      "notAFloat",
      `expected floats to round to ${decimals} decimals, got ${input.describe()}`,
    );
  const power = 10 ** Math.abs(decimals);
  const [scale, unscale] = decimals > 0 ? [mul, trueDivide] : [trueDivide, mul];
  return underName("round", () => tidy(() => unscale(wholeNumbers(scale(input, power)), power)));
}
round.method = "same" as const;
const wholeNumber = aNumber({ holds: Number.isSafeInteger, expected: "a whole number" });
const roundParameters = parameters("round", { x: operand(aTensor), decimals: named(wholeNumber, 0) });

/**
 * Rounds each element toward 0. The gradient is 0. @see {@link neg}
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
 * Computes x − trunc(x), with the sign of x, for each element; 0 for integers, NaN for infinities. The gradient is 1.
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
