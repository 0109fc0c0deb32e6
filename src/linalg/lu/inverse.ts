import { operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkInfo } from "../info.ts";
import { squareOperand } from "../matrices.ts";
import { invertRecorded, singular } from "./solve.ts";

/** An inverse, with the first zero pivot of each matrix. */
export interface InverseResult<D extends DType = DType> {
  readonly inverse: Tensor<D>;
  /** int32, of the shape of the batch: the first zero pivot of each matrix, counted from 1; 0 if there is none. */
  readonly info: Tensor<"int32">;
}

const declared = { a: operand(aTensor) } as const;
const invParameters = parameters("inv", declared);
const invExParameters = parameters("invEx", declared);

/**
 * Computes the inverse of square matrices, by LU factorization with partial pivoting. To solve a system, use
 * {@link solve}: it takes a third of the time and has a smaller residual.
 *
 * @param a […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns […, n, n], of the dtype of `a`
 *
 * @example
 * linalg.inv(tensor([[2, 0], [0, 4]])); // float32 [[0.5, 0], [0, 0.25]]
 *
 * @throws {LinAlgError} for a singular matrix, naming it and its zero pivot; {@link invEx} returns `info` instead.
 * @throws {ShapeError} for a matrix that is not square. @throws {DTypeError} if the dtype is not a float.
 */
export function inv<D extends DType>(a: Tensor<D>): Tensor<D>;
export function inv(...values: unknown[]): Tensor {
  const { a } = invParameters(values);
  const { result, info } = invertRecorded("inv", squareOperand("inv", a));
  checkInfo("inv", info, singular, [result]);
  return toDType(result, a.dtype);
}

/**
 * Computes the inverse as {@link inv} does, but returns `info` instead of throwing an error. The inverse of a singular
 * matrix is infinity and NaN.
 *
 * @param a […, n, n]
 * @returns inverse […, n, n], info int32 […]
 *
 * @example
 * linalg.invEx(tensor([[1, 2], [2, 4]])).info.item(); // 2
 */
export function invEx<D extends DType>(a: Tensor<D>): InverseResult<D>;
export function invEx(...values: unknown[]): InverseResult {
  const { a } = invExParameters(values);
  const { result, info } = invertRecorded("invEx", squareOperand("invEx", a));
  return { inverse: toDType(result, a.dtype), info };
}
