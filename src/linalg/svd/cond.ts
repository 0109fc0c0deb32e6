import { either, nothing } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { zeros } from "../../ops/creation/full.ts";
import { mul, reciprocal } from "../../ops/elementwise/arithmetic.ts";
import { gt } from "../../ops/elementwise/comparison.ts";
import { div } from "../../ops/elementwise/division.ts";
import { isnan } from "../../ops/elementwise/predicates.ts";
import { where } from "../../ops/elementwise/where.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { select } from "../../ops/view/slice.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { type DType, type RealOf, realDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { invEx } from "../lu/inverse.ts";
import { matrixOperand, squareOperand } from "../matrices.ts";
import { anOrder, type MatrixNormOrder, matrixNormOf } from "./matrix_norm.ts";
import { singularValues } from "./svd.ts";

/** Options of {@link cond}. */
export interface CondOptions {
  /** The order of the norm, as in `matrixNorm`; null means 2. Default null. */
  p?: MatrixNormOrder | null;
}

const condParameters = parameters("cond", { a: operand(aTensor), p: optional(either(nothing, anOrder), null) });

/**
 * Computes the condition number of matrices, ‖A‖ ‖A⁻¹‖. Orders 2 (or null), -2 and "nuc" use singular values; the
 * others use the inverse, and are infinite for a singular matrix. For ±2 matrices need not be square: 2 divides the
 * largest singular value by the smallest, -2 does the reverse, and a zero matrix gives NaN, as in PyTorch.
 *
 * @param a […, n, n], or […, m, n] for the orders ±2, of a float or complex dtype; float16 and bfloat16 are computed
 * in float32
 * @returns of the shape of the batch, of the dtype of `a`
 *
 * @example
 * linalg.cond(tensor([[2, 0], [0, 0.5]])).item(); // 4
 *
 * @throws {LinAlgError} if the order needs singular values and a matrix has infinite or NaN elements, naming it.
 * @throws {ShapeError} for a matrix that is not square if the order requires it, and a tensor with fewer than two axes.
 * @throws {DTypeError} if the dtype is not a float.
 */
export function cond<D extends DType>(a: Tensor<D>, ...options: Given<CondOptions, ["p"]>): Tensor<RealOf<D>>;
export function cond(...values: unknown[]): Tensor {
  const { a, p } = condParameters(values);
  const order = p ?? 2;
  const matrix = (Math.abs(order as number) === 2 ? matrixOperand : squareOperand)("cond", a);
  if (matrix.shape.at(-1) === 0 || matrix.shape.at(-2) === 0)
    return zeros(matrix.shape.slice(0, -2), { dtype: realDType(a.dtype) });
  return toDType(conditionOf(matrix, order), realDType(a.dtype));
}

function conditionOf(a: Tensor, order: MatrixNormOrder): Tensor {
  if (order !== "nuc" && Math.abs(order as number) !== 2) return byInverse(a, order);
  const values = singularValues("cond", a);
  if (order === "nuc") return mul(sum(values, { dim: -1 }), sum(reciprocal(values), { dim: -1 }));
  const [largest, smallest] = [select(values, -1, 0), select(values, -1, -1)];
  return order === 2 ? div(largest, smallest) : div(smallest, largest);
}

function byInverse(a: Tensor, order: MatrixNormOrder): Tensor {
  const { inverse, info } = invEx(a);
  const isSingular = unsqueeze(unsqueeze(gt(info, 0), -1), -1);
  const known = where(isSingular, Number.POSITIVE_INFINITY, inverse);
  const product = mul(matrixNormOf("cond", a, order), matrixNormOf("cond", known, order));
  return where(isnan(product), Number.POSITIVE_INFINITY, product); // the NaN of 0 · ∞, as in PyTorch
}
