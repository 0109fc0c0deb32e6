import { underName } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import { parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkFactors, checkRanks, factors } from "./checks.ts";
import { plainMatmul } from "./plain_matmul.ts";
import { product } from "./product.ts";

/**
 * Computes the matrix product a · b, as PyTorch's `matmul`: `out[…, i, j] = Σₖ a[…, i, k] · b[…, k, j]`.
 *
 * Axes before the last two are a batch and broadcast. A vector on the left is a row, a vector on the right is a column,
 * and the added axis is removed from the result: two vectors give their dot product, without axes. Operands may be
 * strided: transposed and broadcast tensors are not copied.
 *
 * Floats are summed in at least float32 and rounded once. Integers wrap around. Empty sums are 0.
 *
 * @param a […, m, k] or [k]
 * @param b […, k, n] or [k], of the same dtype
 * @returns […, m, n], without m if a is a vector, without n if b is a vector
 *
 * @example
 * matmul(tensor([[1, 2], [3, 4]]), tensor([10, 1])); // float32 [12, 34]
 *
 * @throws {ShapeError} if an operand has no axes, inner sizes differ, or batches can't be broadcast together.
 * @throws {DTypeError} if dtypes differ, and for bool.
 */
export function matmul<D extends DType>(a: Tensor<D>, b: Tensor<D>): Tensor<D>;
export function matmul(...values: unknown[]): Tensor {
  const { a, b } = matmulParameters(values);
  return plainMatmul(a, b);
}
matmul.method = "same" as const;
const matmulParameters = parameters("matmul", factors);

/**
 * Computes the product of two matrices: {@link matmul} without broadcasting.
 *
 * @param a [m, k]
 * @param b [k, n], of the same dtype
 *
 * @example
 * mm(tensor([[1, 2]]), tensor([[3], [4]])); // float32 [[11]]
 *
 * @throws {ShapeError} if an operand is not a matrix, or inner sizes differ.
 * @throws {DTypeError} as {@link matmul}.
 */
export function mm<D extends DType>(a: Tensor<D>, b: Tensor<D>): Tensor<D>;
export function mm(...values: unknown[]): Tensor {
  const { a, b } = mmParameters(values);
  checkRanks("mm", 2, "matrices", [a, b]);
  checkFactors("mm", a, b);
  return underName("mm", () => product(a, b));
}
mm.method = "same" as const;
const mmParameters = parameters("mm", factors);

/**
 * Computes the products of two batches of matrices, pair by pair: {@link matmul} without broadcasting.
 *
 * @param a [batch, m, k]
 * @param b [batch, k, n], of the same dtype
 *
 * @example
 * bmm(zeros([10, 3, 4]), zeros([10, 4, 5])); // [10, 3, 5]
 *
 * @throws {ShapeError} if ranks are not 3, or batches or inner sizes differ.
 * @throws {DTypeError} as {@link matmul}.
 */
export function bmm<D extends DType>(a: Tensor<D>, b: Tensor<D>): Tensor<D>;
export function bmm(...values: unknown[]): Tensor {
  const { a, b } = bmmParameters(values);
  checkRanks("bmm", 3, "batches of matrices (rank 3)", [a, b]);
  checkFactors("bmm", a, b);
  if (a.shape[0] !== b.shape[0])
    throw new ShapeError(
      "bmm",
      "shapesDiffer",
      `${a.describe()} times ${b.describe()}: the batches have ${a.shape[0]} and ${b.shape[0]} matrices; ` +
        "matmul broadcasts, bmm does not",
    );
  return underName("bmm", () => product(a, b));
}
bmm.method = "same" as const;
const bmmParameters = parameters("bmm", factors);
