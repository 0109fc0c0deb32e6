import { ShapeError } from "../../core/errors.ts";
import { aNumber, axes } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { named, operand, optional, parameters } from "../../core/parameters.ts";
import { movedim } from "../../ops/view/permute.ts";
import { reshape } from "../../ops/view/reshape.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkSameDType } from "../matrices.ts";
import { inv } from "./inverse.ts";
import { solve } from "./solve.ts";

/** Options of {@link tensorSolve}. */
export interface TensorSolveOptions {
  /** Axes of `a` to move behind its other axes, before the equation is solved. */
  dims?: number | readonly number[];
}

const tensorSolveParameters = parameters("tensorSolve", {
  a: operand(aTensor),
  b: operand(aTensor),
  dims: named(axes),
});

/**
 * Solves a tensor equation: finds X such that `tensordot(a, x, x.rank)` equals B.
 *
 * @param a of a float or complex dtype; its shape is the shape of `b` followed by the shape of X, which has as many
 *   elements as `b`
 * @param b of the dtype of `a`
 *
 * @example
 * const x = linalg.tensorSolve(reshape(eye(6), [2, 3, 6]), ones([2, 3])); // float32 [1, 1, 1, 1, 1, 1]
 *
 * @throws {LinAlgError} if there is no unique solution. @throws {ShapeError} if shapes do not match.
 * @throws {DTypeError} if dtypes differ or are not floats.
 */
export function tensorSolve<D extends DType>(a: Tensor<D>, b: Tensor<D>, options?: TensorSolveOptions): Tensor<D>;
export function tensorSolve(...values: unknown[]): Tensor {
  const { a, b, dims } = tensorSolveParameters(values);
  checkSameDType("tensorSolve", a, b);
  const last = dims === undefined ? [] : [dims].flat();
  const moved = movedim(
    a,
    last,
    last.map((_, at) => at - last.length),
  );
  const shape = moved.shape.slice(b.rank);
  if (elementCount(moved.shape.slice(0, b.rank)) !== b.size || elementCount(shape) !== b.size)
    throw new ShapeError(
      "tensorSolve",
      "shapesDiffer",
      `expected a to have the axes of b, followed by axes with as many elements as b, ` +
        `got a ${moved.describe()} and b ${b.describe()}`,
    );
  return reshape(solve(reshape(moved, [b.size, b.size]), reshape(b, [b.size])), shape);
}

/** Options of {@link tensorInv}. */
export interface TensorInvOptions {
  /** The number of leading axes of `a` that form the rows of the inverted matrix; at least 1. Default 2. */
  ind?: number;
}

const tensorInvParameters = parameters("tensorInv", { a: operand(aTensor), ind: optional(aNumber(count), 2) });

/**
 * Computes the inverse of a tensor for {@link tensorSolve}. It treats the first `ind` axes as rows and the others as
 * columns, and inverts that matrix. The result has the shape of the other axes, followed by the first ones.
 *
 * @param a of a float dtype, with as many elements along its first `ind` axes as along the others
 *
 * @example
 * linalg.tensorInv(reshape(eye(6), [6, 2, 3]), { ind: 1 }).shape; // [2, 3, 6]
 *
 * @throws {LinAlgError} for a singular tensor. @throws {ShapeError} if shapes do not match. @throws {DTypeError}
 * if the dtype is not a float.
 */
export function tensorInv<D extends DType>(a: Tensor<D>, options?: TensorInvOptions): Tensor<D>;
export function tensorInv(...values: unknown[]): Tensor {
  const { a, ind } = tensorInvParameters(values);
  const [first, others] = [a.shape.slice(0, ind), a.shape.slice(ind)];
  const size = elementCount(first);
  if (ind < 1 || elementCount(others) !== size)
    throw new ShapeError(
      "tensorInv",
      "shapesDiffer",
      `expected the first ${ind} axes to have as many elements as the others, got ${a.describe()}`,
    );
  return reshape(inv(reshape(a, [size, size])), [...others, ...first]);
}
