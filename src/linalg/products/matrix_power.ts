import { lastElement } from "../../core/collections.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { clone } from "../../ops/copy/copy.ts";
import { eye } from "../../ops/creation/eye.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { expand } from "../../ops/view/expand.ts";
import { type DType, hasGradients } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { inv } from "../lu/inverse.ts";
import { squareOperand } from "../matrices.ts";

/**
 * Computes the n-th power of square matrices by repeated squaring, with about 2 log₂ n products. Power 0 is the
 * identity; a negative power is a power of the inverse.
 *
 * @param a […, n, n], of numbers; float16 and bfloat16 are computed in float32
 * @param n a whole number
 *
 * @example
 * linalg.matrixPower(tensor([[1, 1], [0, 1]]), 5); // float32 [[1, 5], [0, 1]]
 *
 * @throws {LinAlgError} for a negative power of a singular matrix. @throws {ShapeError} for a matrix that is not
 * square. @throws {DTypeError} for bool, and for a negative power of integers.
 */
export function matrixPower<D extends DType>(a: Tensor<D>, n: number): Tensor<D>;
export function matrixPower(...values: unknown[]): Tensor {
  const { a, n } = matrixPowerParameters(values);
  const matrix = squareNumbers(a);
  if (n === 0) return clone(expand(eye(lastElement(a.shape), { dtype: a.dtype }), a.shape));
  if (n < 0 && !hasGradients(a.dtype))
    throw new DTypeError("matrixPower", "notAFloat", `expected floats for a negative power, got ${a.describe()}`);
  const base = n < 0 ? inv(matrix) : matrix;
  return toDType(n === 1 ? clone(base) : power(base, Math.abs(n)), a.dtype);
}
const matrixPowerParameters = parameters("matrixPower", {
  a: operand(aTensor),
  n: required(aNumber({ holds: (n) => Number.isSafeInteger(n), expected: "a whole number" })),
});

function squareNumbers(a: Tensor): Tensor {
  if (hasGradients(a.dtype)) return squareOperand("matrixPower", a);
  if (a.dtype === "bool") throw new DTypeError("matrixPower", "bool", `expected numbers, got ${a.describe()}`);
  if (a.rank < 2 || a.shape.at(-1) !== a.shape.at(-2))
    throw new ShapeError("matrixPower", "notSquare", `expected a to be square, got ${a.describe()}`);
  return a;
}

/** Computes Aⁿ as a product of some of the powers A, A², A⁴, …: their exponents add up to n. */
function power(a: Tensor, n: number): Tensor {
  let result: Tensor | undefined;
  let square = a;
  for (let left = n; ; square = matmul(square, square)) {
    if (left % 2 === 1) result = result ? matmul(result, square) : square;
    left = Math.floor(left / 2);
    if (left === 0) return result!;
  }
}
