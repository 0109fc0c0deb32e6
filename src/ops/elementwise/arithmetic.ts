import { defineBinary, defineUnary } from "./define.ts";
import { zerosLike } from "./operands.ts";
import type { BinaryOperation, FloatOperation, UnaryOperation } from "./types.ts";

/**
 * a + b for each pair of elements, broadcast; integers wrap around, bools are joined by or.
 *
 * @example
 * add(tensor([1, 2]), 0.5); // float32 [1.5, 2.5]
 *
 * @throws {ShapeError} where the shapes can't be broadcast together.
 * @throws {DTypeError} where a number does not fit the integer tensor that it meets.
 */
export const add: BinaryOperation = defineBinary("add", {
  takes: "everything",
  reference: { float: (a, b) => a + b, integer: (a, b) => a + b },
  gradient: (g) => [g, g],
});

/**
 * a − b for each pair of elements, broadcast; integers wrap around.
 *
 * @example
 * sub(tensor([3, 5]), 1); // float32 [2, 4]
 *
 * @throws {DTypeError} for bools. @see {@link add}
 */
export const sub: BinaryOperation = defineBinary("sub", {
  takes: "numbers",
  reference: { float: (a, b) => a - b, integer: (a, b) => a - b },
  gradient: (g, _a, _b, needs) => [g, needs[1] ? neg(g) : null],
});

/**
 * a · b for each pair of elements, broadcast; integers wrap around, bools are joined by and. @see {@link add}
 *
 * @example
 * mul(tensor([3, 5]), tensor([2, 10])); // float32 [6, 50]
 */
export const mul: BinaryOperation = defineBinary("mul", {
  takes: "everything",
  saves: "operands",
  reference: { float: (a, b) => a * b, integer: (a, b) => a * b },
  gradient: (g, a, b, needs) => [needs[0] ? mul(g, b) : null, needs[1] ? mul(g, a) : null],
});

/**
 * −x for each element; integers wrap around.
 *
 * @example
 * neg(tensor([1, -2])); // float32 [-1, 2]
 *
 * @throws {DTypeError} for bools.
 */
export const neg: UnaryOperation = defineUnary("neg", {
  takes: "numbers",
  reference: { float: (x) => -x, integer: (x) => -x },
  gradient: (g) => neg(g),
});

/**
 * |x| for each element; integers wrap around. The gradient at 0 is 0. @see {@link neg}
 *
 * @example
 * abs(tensor([-2, 0, 3])); // float32 [2, 0, 3]
 */
export const abs: UnaryOperation = defineUnary("abs", {
  takes: "numbers",
  saves: "input",
  reference: { float: Math.abs, integer: (x) => (x < 0n ? -x : x) },
  gradient: (g, x) => mul(g, sign(x)),
});

/**
 * −1, 0 or 1 for each element; 0 for NaN, and a bool itself. The gradient is 0.
 *
 * @example
 * sign(tensor([-2, 0, 3])); // float32 [-1, 0, 1]
 */
export const sign: UnaryOperation = defineUnary("sign", {
  takes: "everything",
  reference: {
    float: (x) => Number(x > 0) - Number(x < 0),
    integer: (x) => (x > 0n ? 1n : x < 0n ? -1n : 0n),
  },
  gradient: zerosLike,
});

/**
 * x² for each element; integers wrap around. @see {@link neg}
 *
 * @example
 * square(tensor([-2, 3])); // float32 [4, 9]
 */
export const square: UnaryOperation = defineUnary("square", {
  takes: "numbers",
  saves: "input",
  reference: { float: (x) => x * x, integer: (x) => x * x },
  gradient: (g, x) => mul(g, mul(x, 2)),
});

/**
 * 1/x for each element. @see {@link exp}
 *
 * @example
 * reciprocal(tensor([4, -2])); // float32 [0.25, -0.5]
 */
export const reciprocal: FloatOperation = defineUnary("reciprocal", {
  takes: "floats",
  saves: "output",
  reference: { float: (x) => 1 / x },
  gradient: (g, y) => mul(neg(g), square(y)),
});
