/** Products that sum over axes of choice. */
import { named as underName } from "../../backend/dispatch.ts";
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

/** Options of {@link tensordot}. */
export interface TensordotOptions {
  /**
   * The axes that are summed over: how many of the last ones of a and the first ones of b, or a list of axes of each.
   * Default 2.
   */
  dims?: number | readonly (readonly number[])[] | undefined;
}

/**
 * The product that sums over axes of choice: the other axes of a, then those of b, are left. With no axis it is the
 * product of all pairs.
 *
 * @param a of any shape
 * @param b of the same dtype, with as many elements along the axes that are summed over
 *
 * @example
 * tensordot(tensor([[1, 2], [3, 4]]), tensor([[5, 6], [7, 8]]), 1); // float32 [[19, 22], [43, 50]]
 * tensordot(tensor([[1, 2], [3, 4]]), tensor([[5, 6], [7, 8]]), [[0, 1], [0, 1]]); // float32 70
 *
 * @throws {ShapeError} for an axis out of range or named twice, and where sizes differ. @throws {DTypeError} where
 * dtypes differ, and for bool. @throws {ArgumentError} for dims that are no number of axes and no two lists.
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
  const single = left.flatMap((axis, at) => (isSingle(a.shape[axis]!, b.shape[right[at]!]!) ? [at] : []));
  for (const [at, axis] of left.entries())
    if (a.shape[axis] !== b.shape[right[at]!] && !single.includes(at))
      throw new ShapeError(
        "tensordot",
        "shapesDiffer",
        `expected as many elements along axis ${axis} of ${a.describe()} as along axis ${right[at]} of ${b.describe()}`,
      );
  return underName("tensordot", () =>
    tidy(() => {
      const alongSingle = (x: Tensor, axes: readonly number[]): Tensor => {
        const repeated = single.map((at) => axes[at]!).filter((axis) => x.shape[axis] !== 1);
        return repeated.length === 0 ? x : (sum(x, { dim: repeated, keepdim: true, dtype: x.dtype }) as Tensor);
      };
      return summedOver(alongSingle(a, left), alongSingle(b, right), left, right);
    }),
  );
}

/** Whether one of two sizes is 1 and is repeated along the other. */
const isSingle = (a: number, b: number): boolean => a !== b && (a === 1 || b === 1);
tensordot.method = "same" as const;
const tensordotParameters = parameters("tensordot", {
  ...factors,
  dims: optional(either(someNumber, listOf(listOf(someNumber, "a list of axes"), "two lists of axes")), 2),
});

function summedOver(a: Tensor, b: Tensor, left: readonly number[], right: readonly number[]): Tensor {
  const [ownA, ownB] = [othersThan(a, left), othersThan(b, right)];
  const [shapeA, shapeB] = [ownA.map((axis) => a.shape[axis]!), ownB.map((axis) => b.shape[axis]!)];
  const inner = elementCount(left.map((axis) => a.shape[axis]!));
  const rows = reshape(permute(a, [...ownA, ...left]), [elementCount(shapeA), inner]);
  const columns = reshape(permute(b, [...right, ...ownB]), [inner, elementCount(shapeB)]);
  return reshape(product(rows, columns), [...shapeA, ...shapeB]);
}

const othersThan = (x: Tensor, axes: readonly number[]): number[] =>
  x.shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));

/** The axes of both, in pairs. */
function axesOf(a: Tensor, b: Tensor, dims: number | readonly (readonly number[])[]): [number[], number[]] {
  if (typeof dims === "number") {
    if (!(Number.isInteger(dims) && dims >= 0 && dims <= Math.min(a.rank, b.rank)))
      throw new ArgumentError(
        "tensordot",
        "invalidCount",
        `expected dims to be a number of axes that both have, got ${dims} for ${a.describe()} and ${b.describe()}`,
      );
    const count = Array.from({ length: dims }, (_, at) => at);
    return [count.map((at) => a.rank - dims + at), count];
  }
  const [left, right] = dims;
  if (dims.length !== 2 || left!.length !== right!.length)
    throw new ArgumentError(
      "tensordot",
      "lengthsDiffer",
      `expected dims to be two lists of as many axes, got ${JSON.stringify(dims)}`,
    );
  return [distinct(a, left!), distinct(b, right!)];
}

function distinct(x: Tensor, dims: readonly number[]): number[] {
  const axes = dims.map((dim) => normalizeAxis("tensordot", dim, x.rank, "dims"));
  if (new Set(axes).size < axes.length)
    throw new ShapeError("tensordot", "axisTwice", `expected each axis once, got [${dims.join(", ")}]`);
  return axes;
}

/**
 * The dot products of the rows of two tensors, along the last axis of both: out[i…, j…] = Σₖ a[i…, k] · b[j…, k]. A
 * number without axes multiplies the other one.
 *
 * @param a […, k]
 * @param b […, k], of the same dtype
 * @returns the other axes of a, then those of b
 *
 * @example
 * inner(tensor([[1, 2], [3, 4]]), tensor([10, 1])); // float32 [12, 34]
 *
 * @throws {ShapeError} where the last axes differ. @throws {DTypeError} where dtypes differ, and for bool.
 */
export function inner<D extends DType>(a: Tensor<D>, b: Tensor<D>): Tensor<D>;
export function inner(...values: unknown[]): Tensor {
  const { a, b } = innerParameters(values);
  checkSameDType("inner", [a, b]);
  if (a.rank === 0 || b.rank === 0) return underName("inner", () => mul(a, b) as Tensor);
  if (a.shape.at(-1) !== b.shape.at(-1))
    throw new ShapeError(
      "inner",
      "shapesDiffer",
      `expected as many elements along the last axes, got ${a.describe()} and ${b.describe()}`,
    );
  return underName("inner", () => tidy(() => summedOver(a, b, [a.rank - 1], [b.rank - 1])));
}
inner.method = "same" as const;
const innerParameters = parameters("inner", factors);
