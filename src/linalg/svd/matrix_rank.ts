import { noGrad } from "../../autograd/modes.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { zeros } from "../../ops/creation/full.ts";
import { sum } from "../../ops/reduction/sum.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { eigvalsh } from "../eigh/eigh.ts";
import { matrixOperand, squareOperand } from "../matrices.ts";
import { areSignificant, type RankOptions, rankParameters } from "./rank_tolerance.ts";
import { singularValues } from "./svd.ts";

const matrixRankParameters = parameters("matrixRank", { a: operand(aTensor), ...rankParameters });

/**
 * Computes the rank of matrices: the number of singular values above max(atol, rtol · the largest one).
 *
 * @param a […, m, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns int64, of the shape of the batch
 *
 * @example
 * linalg.matrixRank(tensor([[1, 2], [2, 4]])).item(); // 1n
 *
 * @throws {LinAlgError} for a matrix with elements that are infinite or NaN, naming it. @throws {ShapeError} for a
 * tensor with fewer than two axes, and a `hermitian` matrix that is not square. @throws {DTypeError} if the dtype is
 * not a float.
 */
export function matrixRank<D extends DType>(a: Tensor<D>, options?: RankOptions): Tensor<"int64">;
export function matrixRank(...values: unknown[]): Tensor {
  const { a, ...options } = matrixRankParameters(values);
  const operation = "matrixRank";
  const matrix = (options.hermitian ? squareOperand : matrixOperand)(operation, a);
  if (matrix.shape.at(-1) === 0 || matrix.shape.at(-2) === 0)
    return zeros(matrix.shape.slice(0, -2), { dtype: "int64" });
  return noGrad(() => {
    const sizes = options.hermitian ? eigvalsh(matrix) : singularValues(operation, matrix);
    return sum(areSignificant(sizes, matrix, options), { dim: -1, dtype: "int64" });
  });
}
