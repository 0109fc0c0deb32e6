/** Products that sum over chosen axes. */
import { underName } from "../../backend/dispatch.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { either, listOf, someNumber } from "../../core/kinds.ts";
import { type Given, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { elementCount, normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { sum } from "../reduction/sum.ts";
import { permute } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { checkSameDType, factors } from "./checks.ts";
import { product } from "./product.ts";
import { asColumns, asNumbers, asRows } from "./views.ts";

/** Options of {@link tensordot}. */
export interface TensordotOptions {
  /**
   * The axes to sum over: a number n, for the last n axes of a and the first n of b; or a list of axes for each.
   * Default 2.
   */
  dims?: number | readonly (readonly number[])[] | undefined;
}

/**
 * Computes the product of two tensors, summed over chosen axes. The result has the other axes of a, then those of b.
 * With no axes it is the product of all pairs of elements.
 *
 * @param a of any shape
 * @param b of the same dtype, with the same sizes along the axes that are summed over
 *
 * @example
 * tensordot(tensor([[1, 2], [3, 4]]), tensor([[5, 6], [7, 8]]), 1); // float32 [[19, 22], [43, 50]]
 * tensordot(tensor([[1, 2], [3, 4]]), tensor([[5, 6], [7, 8]]), [[0, 1], [0, 1]]); // float32 70
 *
 * @throws {ShapeError} for an axis out of range or given twice, or if sizes differ.
 * @throws {DTypeError} if dtypes differ, and for bool.
 * @throws {ArgumentError} if dims is neither a valid number of axes nor two lists of equal length.
 */
export function tensordot<D extends DType>(
  a: Tensor<D>,
  b: Tensor<D>,
  ...options: Given<TensordotOptions, ["dims"]>
): Tensor<D>;
export function tensordot(...values: unknown[]): Tensor {
  const { a, b, dims } = tensordotParameters(values);
  checkSameDType("tensordot", [a, b]);
  const [left, right] = axesOf(a, b, dims);
  const single = left.flatMap((axis, at) => (isSingle(a.shape[axis], b.shape[right[at]]) ? [at] : []));
  for (const [at, axis] of left.entries())
    if (a.shape[axis] !== b.shape[right[at]] && !single.includes(at))
      throw new ShapeError(
        "tensordot",
        "shapesDiffer",
        `expected as many elements along axis ${axis} of ${a.describe()} as along axis ${right[at]} of ${b.describe()}`,
      );
  return underName("tensordot", () =>
    tidy(() => {
      const alongSingle = (x: Tensor, axes: readonly number[]): Tensor => {
        const repeated = single.map((at) => axes[at]).filter((axis) => x.shape[axis] !== 1);
        return repeated.length === 0 ? x : sum(x, { dim: repeated, keepdim: true, dtype: x.dtype });
      };
      return summedOver(alongSingle(a, left), alongSingle(b, right), left, right);
    }),
  );
}

/** Whether exactly one of two sizes is 1, so that it broadcasts. */
const isSingle = (a: number, b: number): boolean => a !== b && (a === 1 || b === 1);
tensordot.method = "same" as const;
const tensordotParameters = parameters("tensordot", {
  ...factors,
  dims: optional(either(someNumber, listOf(listOf(someNumber, "a list of axes"), "two lists of axes")), 2),
});

function summedOver(a: Tensor, b: Tensor, left: readonly number[], right: readonly number[]): Tensor {
  const [freeA, freeB] = [othersThan(a, left), othersThan(b, right)];
  const [shapeA, shapeB] = [freeA.map((axis) => a.shape[axis]), freeB.map((axis) => b.shape[axis])];
  const inner = elementCount(left.map((axis) => a.shape[axis]));
  const rows = reshape(permute(a, [...freeA, ...left]), [elementCount(shapeA), inner]);
  const columns = reshape(permute(b, [...right, ...freeB]), [inner, elementCount(shapeB)]);
  return reshape(product(rows, columns), [...shapeA, ...shapeB]);
}

const othersThan = (x: Tensor, axes: readonly number[]): number[] =>
  x.shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));

/** Returns the axes of a and b to sum over, in pairs. */
function axesOf(a: Tensor, b: Tensor, dims: number | readonly (readonly number[])[]): [number[], number[]] {
  if (typeof dims === "number") {
    if (!(Number.isInteger(dims) && dims >= 0 && dims <= Math.min(a.rank, b.rank)))
      throw new ArgumentError(
        "tensordot",
        "invalidCount",
        `expected dims to be from 0 to the smaller rank, got ${dims} for ${a.describe()} and ${b.describe()}`,
      );
    const count = Array.from({ length: dims }, (_, at) => at);
    return [count.map((at) => a.rank - dims + at), count];
  }
  const [left, right] = dims;
  if (dims.length !== 2 || left.length !== right.length)
    throw new ArgumentError(
      "tensordot",
      "lengthsDiffer",
      `expected dims to be two lists of equal length, got ${JSON.stringify(dims)}`,
    );
  return [distinct(a, left), distinct(b, right)];
}

function distinct(x: Tensor, dims: readonly number[]): number[] {
  const axes = dims.map((dim) => normalizeAxis("tensordot", dim, x.rank, "dims"));
  if (new Set(axes).size < axes.length)
    throw new ShapeError("tensordot", "axisTwice", `expected each axis once, got [${dims.join(", ")}]`);
  return axes;
}

/**
 * Computes the dot products of all rows of two tensors, along the last axis of both: `out[i…, j…] = Σₖ a[i…, k] · b[j…,
 * k]`. A tensor without axes multiplies the other operand.
 *
 * @param a […, k]
 * @param b […, k], of the same dtype
 * @returns the other axes of a, then those of b
 *
 * @example
 * inner(tensor([[1, 2], [3, 4]]), tensor([10, 1])); // float32 [12, 34]
 *
 * @throws {ShapeError} if the sizes of the last axes differ.
 * @throws {DTypeError} if dtypes differ, and for bool.
 */
export function inner<D extends DType>(a: Tensor<D>, b: Tensor<D>): Tensor<D>;
export function inner(...values: unknown[]): Tensor {
  const { a, b } = innerParameters(values);
  checkSameDType("inner", [a, b]);
  if (a.rank === 0 || b.rank === 0) return underName("inner", () => mul(a, b));
  if (a.shape.at(-1) !== b.shape.at(-1))
    throw new ShapeError(
      "inner",
      "shapesDiffer",
      `expected last axes of equal size, got ${a.describe()} and ${b.describe()}`,
    );
  if (a.rank === 1 && b.rank === 1) return underName("inner", () => asNumbers(product(asRows(a), asColumns(b))));
  return underName("inner", () => tidy(() => summedOver(a, b, [a.rank - 1], [b.rank - 1])));
}
inner.method = "same" as const;
const innerParameters = parameters("inner", factors);
