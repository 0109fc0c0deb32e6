import { ShapeError } from "../../core/errors.ts";
import { aNumber, axis, choice, either, flag, listOf } from "../../core/kinds.ts";
import { type Given, type Kind, named, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { zeros } from "../../ops/creation/full.ts";
import { amax, amin } from "../../ops/reduction/extrema.ts";
import { norm } from "../../ops/reduction/norm.ts";
import { floatOperand } from "../../ops/reduction/reduce.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { movedim } from "../../ops/view/permute.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { type DType, type RealOf, realDType } from "../../tensor/dtype.ts";
import { aDType, aTensor } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { computeDType } from "../matrices.ts";
import { vectorNorm } from "../norms/vector_norm.ts";
import { singularValues } from "./svd.ts";

/** The order of a matrix norm: Frobenius, nuclear, or a number. */
export type MatrixNormOrder = "fro" | "nuc" | 1 | -1 | 2 | -2 | number;

/** Options of {@link matrixNorm}: the order, the axes of the matrices, whether they stay as size 1, and the dtype. */
export interface MatrixNormOptions<D extends DType = DType> {
  /** "fro", "nuc", 1, -1, 2, -2, Infinity or -Infinity. Default "fro". */
  ord?: MatrixNormOrder;
  /** The axes of rows and of columns. Default the last two. */
  dim?: readonly number[];
  /** Keeps these axes with size 1. Default false. */
  keepdim?: boolean;
  /** A float dtype to which elements are converted first. */
  dtype?: D | undefined;
}

/** @internal */
export const anOrder: Kind<MatrixNormOrder> = either(
  choice("fro", "nuc"),
  aNumber({
    holds: (value) => [1, 2, Number.POSITIVE_INFINITY].includes(Math.abs(value)),
    expected: "1, -1, 2, -2, Infinity or -Infinity",
  }),
);

const matrixNormParameters = parameters("matrixNorm", {
  a: operand(aTensor),
  ord: optional(anOrder, "fro"),
  dim: optional(listOf(axis, "a list of two axes"), [-2, -1]),
  keepdim: optional(flag, false),
  dtype: named(aDType),
});

/**
 * Computes a norm of matrices: "fro", the root of the sum of squares; "nuc", the sum of the singular values; 2 and -2,
 * the largest and the smallest singular value; 1 and -1, the largest and the smallest sum of absolute values in a
 * column; Infinity and -Infinity, in a row. If several sums or singular values are equally large, they share the
 * gradient, as in `norm`.
 *
 * @param a […, m, n], of a float or complex dtype; singular values of float16 and bfloat16 are computed in float32
 * @returns of the shape of the batch, of the dtype of `a`
 *
 * @example
 * linalg.matrixNorm(tensor([[0, 2], [3, 0]]), "nuc").item(); // 5
 *
 * @throws {LinAlgError} if the order needs singular values and a matrix has infinite or NaN elements, naming it.
 * @throws {ShapeError} unless `dim` has two different axes in range, and for a negative order of an empty matrix.
 * @throws {DTypeError} if the dtype is not a float.
 */
export function matrixNorm<D extends DType>(
  a: Tensor<D>,
  ...options: Given<Omit<MatrixNormOptions, "dtype">, ["ord", "dim", "keepdim"]>
): Tensor<RealOf<D>>;
export function matrixNorm<D extends DType>(a: Tensor, options: MatrixNormOptions<D> & { dtype: D }): Tensor<RealOf<D>>;
export function matrixNorm(...values: unknown[]): Tensor {
  const operation = "matrixNorm";
  const { a, ord, dim, keepdim, dtype } = matrixNormParameters(values);
  const input = toDType(a, floatOperand(operation, a, dtype, true).dtype);
  const [rows, columns] = axesOf(operation, input, dim);
  if (ord === "fro") return vectorNorm(input, { dim: [rows, columns], keepdim });
  const ofAxes = (result: Tensor): Tensor =>
    keepdim ? [rows, columns].sort((i, j) => i - j).reduce((x, at) => unsqueeze(x, at), result) : result;
  return ofAxes(matrixNormOf(operation, movedim(input, [rows, columns], [-2, -1]), ord));
}

function axesOf(operation: string, a: Tensor, dim: readonly number[]): [rows: number, columns: number] {
  if (dim.length !== 2 || a.rank < 2)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected two axes of a tensor of at least rank 2, got axes [${dim.join(", ")}] of ${a.describe()}`,
    );
  const [rows, columns] = tupleOf(
    dim.map((each) => normalizeAxis(operation, each, a.rank)),
    2,
  );
  if (rows !== columns) return [rows, columns];
  throw new ShapeError(operation, "axisTwice", `expected two different axes, got [${dim.join(", ")}]`);
}

/** @internal Computes the norm of the matrices along the last two axes. */
export function matrixNormOf(operation: string, a: Tensor, ord: MatrixNormOrder): Tensor {
  if (ord === "fro") return vectorNorm(a, { dim: [-2, -1] });
  const size = Math.abs(ord as number);
  const extreme = (x: Tensor): Tensor => extremeOf(x, (ord as number) < 0);
  if (ord !== "nuc" && size !== 2) return extreme(norm(a, { p: 1, dim: size === 1 ? -2 : -1 }));
  const values = singularValues(operation, toDType(a, computeDType(a.dtype)));
  return toDType(ord === "nuc" ? sum(values, { dim: -1 }) : extreme(values), realDType(a.dtype));
}

/** The smallest or largest element along the last axis. The largest of no elements is 0, since none is negative. */
function extremeOf(x: Tensor, isSmallest: boolean): Tensor {
  if (isSmallest) return amin(x, -1);
  return x.shape.at(-1) === 0 ? zeros(x.shape.slice(0, -1), { dtype: x.dtype }) : amax(x, -1);
}
