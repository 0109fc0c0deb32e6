import { defineBinary } from "./define.ts";
import type { BinaryOperation } from "./types.ts";

/**
 * Computes the greatest common divisor of each pair of integers, with broadcasting. It is never negative, and 0 if both
 * are 0.
 *
 * @example
 * gcd(tensor([12, -18], { dtype: "int32" }), 8); // int32 [4, 2]
 *
 * @throws {DTypeError} for floats and bools. @throws {ShapeError} if the shapes can't be broadcast together.
 */
export const gcd: BinaryOperation = defineBinary("gcd", {
  takes: "integers",
  reference: { integer: greatestCommonDivisor },
});

/**
 * Computes the least common multiple of each pair of integers, with broadcasting. It is 0 if either is 0, else
 * positive, except that overflow wraps around.
 *
 * @example
 * lcm(tensor([4, -6], { dtype: "int32" }), 10); // int32 [20, 30]
 *
 * @throws {DTypeError} for floats and bools. @throws {ShapeError} if the shapes can't be broadcast together.
 */
export const lcm: BinaryOperation = defineBinary("lcm", {
  takes: "integers",
  reference: {
    integer(a, b) {
      const divisor = greatestCommonDivisor(a, b);
      return divisor === 0n ? 0n : magnitude(a / divisor) * magnitude(b);
    },
  },
});

const magnitude = (x: bigint): bigint => (x < 0n ? -x : x);

/** Uses Euclid's algorithm. */
function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  let [x, y] = [magnitude(a), magnitude(b)];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}
