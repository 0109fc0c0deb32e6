/**
 * Operands of linear algebra: their dtypes and shapes, and the form in which they are computed.
 *
 * Primitives take float32 or float64 matrices, row-major without gaps, in batches of one shape: […, rows, columns].
 * Where one gives `info`, it is an int32 for each matrix: 0, or what the factorisation found, counted from 1.
 */
import { noGrad } from "../autograd/modes.ts";
import { DTypeError, ShapeError } from "../core/errors.ts";
import { toDType } from "../ops/copy/cast.ts";
import { contiguous, copyOf } from "../ops/copy/copy.ts";
import { expand } from "../ops/view/expand.ts";
import { transpose } from "../ops/view/permute.ts";
import { type DType, isFloat } from "../tensor/dtype.ts";
import { broadcastShapes, elementCount, isRowMajor, rowMajorStrides, type Shape, sameShape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";

/**
 * A matrix, or a batch of them, in the dtype that it is computed in: float16 and bfloat16 become float32.
 *
 * @throws {DTypeError} for a dtype that is no float. @throws {ShapeError} for a tensor of fewer than two axes.
 */
export function matrixOperand(operation: string, x: Tensor, name = "a"): Tensor {
  const own = floatOperand(operation, x, name);
  if (own.rank < 2)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected ${name} to be a matrix or a batch of matrices, got ${x.describe()}`,
    );
  return own;
}

/** As {@link matrixOperand}, of as many rows as columns. */
export function squareOperand(operation: string, x: Tensor, name = "a"): Tensor {
  const own = matrixOperand(operation, x, name);
  if (own.shape.at(-1) !== own.shape.at(-2))
    throw new ShapeError(operation, "notSquare", `expected ${name} to be square, got ${x.describe()}`);
  return own;
}

/** A float tensor of any shape in the dtype that it is computed in. */
export function floatOperand(operation: string, x: Tensor, name = "a"): Tensor {
  if (!isFloat(x.dtype))
    throw new DTypeError(
      operation,
      "notAFloat",
      `expected ${name} of a float dtype, got ${x.dtype}; toDType(${name}, "float32") converts`,
    );
  return toDType(x, computeDType(x.dtype));
}

/** In which dtype a float is factorised. */
export const computeDType = (dtype: DType): "float32" | "float64" => (dtype === "float64" ? "float64" : "float32");

/** @throws {DTypeError} where the dtypes differ. */
export function checkSameDType(operation: string, a: Tensor, b: Tensor): void {
  if (a.dtype !== b.dtype)
    throw new DTypeError(operation, "dtypesDiffer", `expected operands of one dtype, got ${a.dtype} and ${b.dtype}`);
}

/** The elements row-major without gaps from the begin of their storage, not recorded: what primitives take. */
export const dense = (x: Tensor): Tensor => noGrad(() => (x.offset === 0 ? contiguous(x) : copyOf("contiguous", x)));

/** As {@link dense}; matrices whose transposes lie so are left as they are: for primitives that take either. */
export const denseOrTransposed = (x: Tensor): Tensor => (isTransposed(x) && x.offset === 0 ? x : dense(x));

/** Whether matrices lie column-major without gaps, and not row-major too. */
export const isTransposed = ({ shape, strides, isContiguous }: Tensor): boolean =>
  !isContiguous && isRowMajor(swapped(shape), swapped(strides));

/** The strides of a result that is to lie as `x` does; undefined for row-major ones. */
export const stridesLike = (x: Tensor, shape: Shape = x.shape): readonly number[] | undefined =>
  isTransposed(x) ? swapped(rowMajorStrides(swapped(shape))) : undefined;

/** The last two numbers change places. */
const swapped = (list: readonly number[]): number[] => [...list.slice(0, -2), list.at(-1)!, list.at(-2)!];

/** The transposes of matrices: a view. */
export const mT = <D extends DType>(x: Tensor<D>): Tensor<D> => transpose(x, -2, -1);

/** Both operands with the batch axes that theirs broadcast to. */
export function broadcastBatches(operation: string, a: Tensor, b: Tensor): [Tensor, Tensor] {
  const batch = broadcastShapes(operation, a.shape.slice(0, -2), b.shape.slice(0, -2));
  return [withBatch(a, batch), withBatch(b, batch)];
}

function withBatch(x: Tensor, batch: Shape): Tensor {
  const shape = [...batch, ...x.shape.slice(-2)];
  return sameShape(x.shape, shape) ? x : expand(x, shape);
}

/** How many matrices there are, and their sizes. */
export interface Matrices {
  readonly batch: number;
  readonly rows: number;
  readonly columns: number;
}

export const matricesOf = ({ shape }: Tensor): Matrices => ({
  batch: elementCount(shape.slice(0, -2)),
  rows: shape.at(-2)!,
  columns: shape.at(-1)!,
});
