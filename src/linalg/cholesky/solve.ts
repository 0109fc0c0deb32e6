import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { lastElement } from "../../core/collections.ts";
import { ShapeError } from "../../core/errors.ts";
import { flag } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { arange } from "../../ops/creation/arange.ts";
import { eye } from "../../ops/creation/eye.ts";
import { add, neg } from "../../ops/elementwise/arithmetic.ts";
import { eq, gt } from "../../ops/elementwise/comparison.ts";
import { where } from "../../ops/elementwise/where.ts";
import { tril } from "../../ops/indexing/triangle.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { amin } from "../../ops/reduction/extrema.ts";
import { diagonal } from "../../ops/view/diagonal.ts";
import { expand } from "../../ops/view/expand.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { checkInfo } from "../info.ts";
import { broadcastBatches, checkSameDType, denseOrTransposed, matrixOperand, mH, squareOperand } from "../matrices.ts";
import { triangularSolution } from "../triangular/triangular.ts";
import type { CholeskyOptions } from "./cholesky.ts";
import { hasInverseKernel, inversePrimitive } from "./inverse.cpu.ts";

/**
 * Solves A X = B for symmetric positive definite matrices A, given their Cholesky factors: A = L Lᵀ, or A = Uᵀ U. The
 * other triangle of a factor is not read. A zero on its diagonal gives infinity or NaN, as in PyTorch.
 *
 * @param b […, n, k], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @param l […, n, n], of the same dtype; batches broadcast
 * @returns X, of the shape of `b` with the broadcast batch
 *
 * @example
 * const l = linalg.cholesky(tensor([[4, 2], [2, 5]]));
 * linalg.choleskySolve(tensor([[8], [12]]), l); // float32 [[1], [2]]
 *
 * @throws {ShapeError} if shapes do not match. @throws {DTypeError} if dtypes differ or are not floats.
 */
export function choleskySolve<D extends DType>(b: Tensor<D>, l: Tensor<D>, options?: CholeskyOptions): Tensor<D>;
export function choleskySolve(...values: unknown[]): Tensor {
  const operation = "choleskySolve";
  const { b, l, upper } = solveParameters(values);
  const factor = squareOperand(operation, l, "l");
  const side = matrixOperand(operation, b, "b");
  checkSameDType(operation, b, l);
  if (factor.shape.at(-1) !== side.shape.at(-2))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected b with ${factor.shape.at(-1)} rows for factors ${l.describe()}, got ${b.describe()}`,
    );
  return tidy(() => {
    const [left, right] = broadcastBatches(operation, upper ? mH(factor) : factor, side);
    const half = triangularSolution(operation, left, right, { upper: false, unitDiagonal: false });
    return toDType(triangularSolution(operation, mH(left), half, { upper: true, unitDiagonal: false }), b.dtype);
  });
}
const solveParameters = parameters("choleskySolve", {
  b: operand(aTensor),
  l: operand(aTensor),
  upper: named(flag, false),
});

/**
 * Computes the inverse of symmetric positive definite matrices A, given their Cholesky factors: A = L Lᵀ, or A = Uᵀ U.
 * The other triangle of a factor is not read. To multiply the inverse by a matrix, use {@link choleskySolve}: it is
 * faster and more accurate.
 *
 * @param l […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns […, n, n], of the dtype of `l`
 *
 * @example
 * linalg.choleskyInverse(linalg.cholesky(tensor([[4, 0], [0, 5]]))); // float32 [[0.25, 0], [0, 0.2]]
 *
 * @throws {LinAlgError} for a factor with a zero on its diagonal, naming it; on metal only once the host reads a tensor
 * that depends on the result. @throws {ShapeError} for a matrix that is not square. @throws {DTypeError} if the dtype
 * is not a float.
 */
export function choleskyInverse<D extends DType>(l: Tensor<D>, options?: CholeskyOptions): Tensor<D>;
export function choleskyInverse(...values: unknown[]): Tensor {
  const operation = "choleskyInverse";
  const { l, upper } = inverseParameters(values);
  const factor = squareOperand(operation, l, "l");
  const lower = upper ? mH(factor) : factor;
  if (lower.size > 0 && hasInverseKernel(lower)) return toDType(inOneCall(operation, lower), l.dtype);
  const identity = expand(eye(lastElement(lower.shape), { dtype: lower.dtype }), lower.shape);
  const half = triangularSolution(operation, lower, identity, { upper: false, unitDiagonal: false });
  const result = toDType(matmul(mH(half), half), l.dtype);
  if (lower.size === 0) return result;
  checkInfo(operation, firstZero(lower), isSingular, [result]);
  return result;
}
const inverseParameters = parameters("choleskyInverse", { l: operand(aTensor), upper: named(flag, false) });

const isSingular = (row: number): string => `is singular: element ${row} of the diagonal is 0`;

/**
 * Computes the inverse of A = L Lᵀ from real factors in one call. With Y = A⁻¹, dY = −Y (dL Lᵀ + L dLᵀ) Y. The gradient
 * with respect to L is the lower triangle of −(S + Sᵀ) L, where S = Y Ȳ Y and Ȳ is the gradient with respect to Y.
 */
function inOneCall(operation: string, lower: Tensor): Tensor {
  const { shape, dtype } = lower;
  const specs = [
    { shape, dtype },
    { shape: shape.slice(0, -2), dtype: "int32" },
  ] as const;
  const [inverse, info] = executeMany(inversePrimitive, [denseOrTransposed(lower)], specs, undefined, operation);
  checkInfo(operation, info, isSingular, [inverse]);
  record(operation, [lower], [inverse], [lower, inverse], ([gradient], [factor, y]) => {
    const s = matmul(y, matmul(gradient, y));
    return [tril(neg(matmul(add(s, mH(s)), tril(factor))))];
  });
  return inverse;
}

/** The first zero on the diagonal of each matrix, counted from 1; 0 if there is none. */
function firstZero(x: Tensor): Tensor<"int32"> {
  const size = lastElement(x.shape);
  return noGrad(() => {
    const numbers = arange(1, size + 1, { dtype: "int32" });
    const isZero = eq(diagonal(x, { dim1: -2, dim2: -1 }), 0);
    const first = amin(where(isZero, numbers, size + 1), { dim: -1 });
    return toDType(where(gt(first, size), 0, first), "int32");
  });
}
