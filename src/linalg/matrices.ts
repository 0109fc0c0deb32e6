/**
 * Operands of linear algebra: their dtypes, shapes and layouts.
 *
 * Primitives accept dense, row-major float32 or float64 matrices in batches of one shape: […, rows, columns]. If a
 * primitive returns `info`, it is one int32 per matrix: 0, or the position of a failure, counted from 1. The lowerings
 * in complex/ compute with complex matrices.
 */

import { noGrad } from "../autograd/modes.ts";
import { lastElement } from "../core/collections.ts";
import { DTypeError, ShapeError } from "../core/errors.ts";
import { conjugate } from "../ops/complex/part.ts";
import { toDType } from "../ops/copy/cast.ts";
import { contiguous, copyOf } from "../ops/copy/copy.ts";
import { expand } from "../ops/view/expand.ts";
import { transpose } from "../ops/view/permute.ts";
import { type ComplexDType, type DType, hasGradients, isComplex, realDType } from "../tensor/dtype.ts";
import { broadcastShapes, elementCount, isRowMajor, rowMajorStrides, type Shape, sameShape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";

/**
 * Checks a matrix or a batch of matrices, and converts it to the compute dtype: float16 and bfloat16 become float32.
 *
 * @throws {DTypeError} if the dtype is not a float or complex.
 * @throws {ShapeError} for a tensor with fewer than two axes.
 */
export function matrixOperand(operation: string, x: Tensor, name = "a"): Tensor {
  const matrix = floatOperand(operation, x, name);
  if (matrix.rank < 2)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected ${name} to be a matrix or a batch of matrices, got ${x.describe()}`,
    );
  return matrix;
}

/** Checks square matrices, as {@link matrixOperand} does. */
export function squareOperand(operation: string, x: Tensor, name = "a"): Tensor {
  const matrix = matrixOperand(operation, x, name);
  if (matrix.shape.at(-1) !== matrix.shape.at(-2))
    throw new ShapeError(operation, "notSquare", `expected ${name} to be square, got ${x.describe()}`);
  return matrix;
}

/** Checks a float or complex tensor of any shape, and converts it to the compute dtype. */
export function floatOperand(operation: string, x: Tensor, name = "a"): Tensor {
  if (!hasGradients(x.dtype))
    throw new DTypeError(
      operation,
      "notAFloat",
      `expected ${name} to have a float dtype, got ${x.dtype}; convert with toDType(${name}, "float32")`,
    );
  return toDType(x, computeDType(x.dtype));
}

/** Returns the compute dtype of a float dtype; a complex dtype itself. */
export const computeDType = (dtype: DType): "float32" | "float64" | ComplexDType =>
  isComplex(dtype) || dtype === "float64" ? dtype : "float32";

/** Returns the machine epsilon of the parts of a compute dtype. */
export const epsilonOf = (dtype: DType): number => (realDType(dtype) === "float64" ? 2 ** -52 : 2 ** -23);

/** Checks that dtypes are equal. @throws {DTypeError} if the dtypes differ. */
export function checkSameDType(operation: string, a: Tensor, b: Tensor): void {
  if (a.dtype !== b.dtype)
    throw new DTypeError(operation, "dtypesDiffer", `expected operands of one dtype, got ${a.dtype} and ${b.dtype}`);
}

/**
 * Returns a dense, row-major tensor with offset 0, as primitives require; a copy if needed. Not recorded for gradients.
 */
export const dense = (x: Tensor): Tensor => noGrad(() => (x.offset === 0 ? contiguous(x) : copyOf("contiguous", x)));

/** As {@link dense}, but keeps matrices whose transposes are dense, for primitives that accept both layouts. */
export const denseOrTransposed = (x: Tensor): Tensor => (isTransposed(x) && x.offset === 0 ? x : dense(x));

/** Whether matrices are dense and column-major, and not row-major as well. */
export const isTransposed = ({ shape, strides, isContiguous }: Tensor): boolean =>
  !isContiguous && isRowMajor(swapped(shape), swapped(strides));

/** Returns the strides of a result with the layout of `x`; undefined for row-major. */
export const stridesLike = (x: Tensor, shape: Shape = x.shape): readonly number[] | undefined =>
  isTransposed(x) ? swapped(rowMajorStrides(swapped(shape))) : undefined;

/** Swaps the last two numbers. */
const swapped = (list: readonly number[]): number[] => [...list.slice(0, -2), lastElement(list), list.at(-2)!];

/** Transposes matrices, as a view. */
export const mT = <D extends DType>(x: Tensor<D>): Tensor<D> => transpose(x, -2, -1);

/** Returns the conjugate transpose of matrices; for real ones the transpose, as a view. */
export const mH = <D extends DType>(x: Tensor<D>): Tensor<D> => conjugate(mT(x)) as Tensor<D>;

/** Broadcasts the batch axes of both operands to one shape. */
export function broadcastBatches(operation: string, a: Tensor, b: Tensor): [Tensor, Tensor] {
  const batch = broadcastShapes(operation, a.shape.slice(0, -2), b.shape.slice(0, -2));
  return [withBatch(a, batch), withBatch(b, batch)];
}

function withBatch(x: Tensor, batch: Shape): Tensor {
  const shape = [...batch, ...x.shape.slice(-2)];
  return sameShape(x.shape, shape) ? x : expand(x, shape);
}

/** The number of matrices in a tensor, and their size. */
export interface Matrices {
  readonly batch: number;
  readonly rows: number;
  readonly columns: number;
}

export const matricesOf = ({ shape }: Tensor): Matrices => ({
  batch: elementCount(shape.slice(0, -2)),
  rows: shape.at(-2)!,
  columns: lastElement(shape),
});
