import { ArgumentError } from "../../core/errors.ts";
import { aBigint, either, someNumber } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { hasGradients, isComplex } from "../../tensor/dtype.ts";
import { tensorOrScalar } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { conjugate, partOf } from "../complex/part.ts";
import { eq } from "./comparison.ts";
import { defineBinary, defineUnary } from "./define.ts";
import { checkNoBools, isBool, promoteOperands, zerosLike } from "./operands.ts";
import type { BinaryOperation, FloatOperation, Operand, RealOperation, ResultOf, UnaryOperation } from "./types.ts";
import { where } from "./where.ts";

/** Options of {@link add} and {@link sub}. */
export interface AlphaOptions {
  /** Factor of b; must be an integer if the result is. Default 1. */
  alpha?: number | bigint | undefined;
}

/** Computes a + b. */
export const plainAdd: BinaryOperation = defineBinary("add", {
  isPublic: false,
  takes: "everything",
  reference: { float: (a, b) => a + b, integer: (a, b) => a + b },
  gradient: (g) => [g, g],
});

/**
 * Computes a + alpha · b for each pair of elements, with broadcasting. Integers wrap around; for bools, + is logical
 * or.
 *
 * @example
 * add(tensor([1, 2]), 0.5); // float32 [1.5, 2.5]
 * add(tensor([1, 2]), tensor([10, 20]), { alpha: 2 }); // float32 [21, 42]
 *
 * @throws {ShapeError} if the shapes can't be broadcast together.
 * @throws {DTypeError} if the integer dtype of a tensor can't represent a number operand.
 * @throws {ArgumentError} if alpha is not an integer but the result is.
 */
export function add<A extends Operand, B extends Operand>(a: A, b: B, options?: AlphaOptions): Tensor<ResultOf<A, B>>;
export function add(augend: Operand, addend: Operand, ...options: unknown[]): Tensor {
  if (options.length === 0) return plainAdd(augend, addend);
  const { a, b, alpha } = addParameters([augend, addend, ...options]);
  return plainAdd(a, scaledBy("add", a, b, alpha));
}
add.method = "promoted" as const;

/** Computes a − b. */
export const plainSub: BinaryOperation = defineBinary("sub", {
  isPublic: false,
  takes: "numbers",
  reference: { float: (a, b) => a - b, integer: (a, b) => a - b },
  gradient: (g, _a, _b, needs) => [g, needs[1] ? neg(g) : null],
});

/**
 * Computes a − alpha · b for each pair of elements, with broadcasting. Integers wrap around.
 *
 * @example
 * sub(tensor([3, 5]), 1); // float32 [2, 4]
 *
 * @throws {DTypeError} if an operand is a bool, as in PyTorch: use {@link logicalXor} or {@link logicalNot}, or convert
 * it. @see {@link add}
 */
export function sub<A extends Operand, B extends Operand>(a: A, b: B, options?: AlphaOptions): Tensor<ResultOf<A, B>>;
export function sub(minuend: Operand, subtrahend: Operand, ...options: unknown[]): Tensor {
  if (isBool(minuend) || isBool(subtrahend)) checkNoBools("sub", { a: minuend, b: subtrahend });
  if (options.length === 0) return plainSub(minuend, subtrahend);
  const { a, b, alpha } = subParameters([minuend, subtrahend, ...options]);
  return plainSub(a, scaledBy("sub", a, b, alpha));
}
sub.method = "promoted" as const;

/** @internal The parameter `alpha`. */
export const alphaParameter = named(either(someNumber, aBigint), 1);
const withAlpha = { a: operand(tensorOrScalar), b: operand(tensorOrScalar), alpha: alphaParameter } as const;
const addParameters = parameters("add", withAlpha);
const subParameters = parameters("sub", withAlpha);

/** @internal Computes alpha · b in the dtype of the result. */
export function scaledBy(operation: string, a: Operand, b: Operand, alpha: number | bigint): Operand {
  if (Number(alpha) === 1) return b;
  const [, factor] = promoteOperands(operation, [a, b]);
  const { dtype } = factor;
  if (!hasGradients(dtype) && typeof alpha === "number" && !Number.isInteger(alpha))
    throw new ArgumentError(
      operation,
      "invalidAlpha",
      `expected alpha to be a whole number for ${dtype}, got ${alpha}`,
    );
  return mul(factor, dtype === "bool" ? alpha !== 0 && alpha !== 0n : alpha);
}

/**
 * Computes a · b for each pair of elements, with broadcasting. Integers wrap around; for bools, · is logical and. @see
 * {@link add}
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
 * Computes −x for each element; integers wrap around.
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
 * Computes |x| for each element; integers wrap around. For complex numbers the result is real. The
 * gradient at 0 is 0. @see {@link neg}
 *
 * @example
 * abs(tensor([-2, 0, 3])); // float32 [2, 0, 3]
 */
export const abs: RealOperation = defineUnary("abs", {
  takes: "numbers",
  complex: "real",
  saves: "input",
  reference: { float: Math.abs, integer: (x) => (x < 0n ? -x : x) },
  gradient: (g, x) => mul(g, sign(x)),
});

/**
 * Returns the sign of each element: −1, 0 or 1; 0 for NaN. Bools are unchanged. The gradient is 0. For a complex number
 * z it is z / |z|, as PyTorch's `sgn`.
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
  complex: "nonholomorphic",
  saves: "input",
  gradient: (g, x) => (isComplex(x.dtype) ? gradientOfDirection(g, x) : zerosLike(g)),
});

/** Computes the gradient of s = z/|z|, the part of g that turns z: (g − Re(g · conj s) · s) / |z|; 0 for z = 0. */
function gradientOfDirection(g: Tensor, z: Tensor): Tensor {
  const s = sign(z);
  const size = abs(z);
  const isZero = eq(size, 0);
  const inward = partOf("real", mul(g, conjugate(s)), 0);
  const turning = mul(sub(g, mul(inward, s)), reciprocal(where(isZero, 1, size)));
  return where(isZero, 0, turning);
}

/**
 * Computes x² for each element; integers wrap around. @see {@link neg}
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
 * Computes 1/x for each element. @see {@link exp}
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
