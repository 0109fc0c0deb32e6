/** Cartesian products and combinations of elements. */
import { underName } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber, flag } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor, tensorsInline } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { clone } from "../copy/copy.ts";
import { tensor } from "../creation/tensor.ts";
import { indexSelect } from "../indexing/gather.ts";
import { reshape } from "../view/reshape.ts";
import { stack } from "./cat.ts";
import { meshgrid } from "./stacks.ts";

/**
 * Returns the Cartesian product of vectors: one row for each choice of one element per vector. The last vector varies
 * fastest. For one vector it is a copy.
 *
 * @param tensors vectors of one dtype, in an array or one by one
 * @returns [n₁ · n₂ · …, number of vectors]
 *
 * @example
 * cartesianProd(tensor([1, 2]), tensor([3, 4])); // float32 [[1, 3], [1, 4], [2, 3], [2, 4]]
 *
 * @throws {ShapeError} if an argument is not a vector, or for an empty list.
 * @throws {DTypeError} if dtypes differ.
 */
export function cartesianProd<D extends DType>(tensors: readonly Tensor<D>[]): Tensor<D>;
export function cartesianProd<D extends DType>(...tensors: readonly Tensor<D>[]): Tensor<D>;
export function cartesianProd(...values: unknown[]): Tensor {
  const { tensors } = cartesianProdParameters(values);
  const [first] = tensors;
  if (!first) throw new ShapeError("cartesianProd", "noTensors", "expected at least one vector, got an empty list");
  for (const each of tensors)
    if (each.rank !== 1) throw new ShapeError("cartesianProd", "wrongRank", `expected vectors, got ${each.describe()}`);
  for (const each of tensors)
    if (each.dtype !== first.dtype)
      throw new DTypeError(
        "cartesianProd",
        "dtypesDiffer",
        `expected vectors of one dtype, got ${first.describe()} and ${each.describe()}`,
      );
  return underName("cartesianProd", () =>
    tidy(() => {
      if (tensors.length === 1) return clone(first);
      return reshape(stack(meshgrid(tensors), -1), [-1, tensors.length]);
    }),
  );
}
const cartesianProdParameters = parameters("cartesianProd", { tensors: operand(tensorsInline) });

/** Options of {@link combinations}. */
export interface CombinationsOptions {
  /** The number of elements in a combination. Default 2. */
  r?: number | undefined;
  /** Whether an element may occur more than once. Default false. */
  withReplacement?: boolean | undefined;
}

/**
 * Returns all combinations of r elements of a vector, one per row, in the order of their positions.
 *
 * @param x a vector of n elements
 * @returns [n! / (r! (n − r)!), r]; with replacement, [(n + r − 1)! / (r! (n − 1)!), r]
 *
 * @example
 * combinations(tensor([1, 2, 3])); // float32 [[1, 2], [1, 3], [2, 3]]
 * combinations(tensor([1, 2]), { withReplacement: true }); // float32 [[1, 1], [1, 2], [2, 2]]
 *
 * @throws {ShapeError} if x is not a vector.
 * @throws {ArgumentError} for an r that is not a whole number of at least 0, or too many combinations for memory.
 */
export function combinations<D extends DType>(
  x: Tensor<D>,
  ...options: Given<CombinationsOptions, ["r", "withReplacement"]>
): Tensor<D>;
export function combinations(...values: unknown[]): Tensor {
  const { x, r, withReplacement } = combinationsParameters(values);
  if (x.rank !== 1) throw new ShapeError("combinations", "wrongRank", `expected a vector, got ${x.describe()}`);
  const rows = countOf(withReplacement ? x.size + r - 1 : x.size, r);
  if (Math.max(rows, 1) * r > MOST_PLACES)
    throw new ArgumentError(
      "combinations",
      "tooMany",
      `expected at most ${MOST_PLACES} elements in total, got ${rows} combinations of ${r}`,
    );
  return underName("combinations", () =>
    tidy(() => {
      const places = placesOf(x.size, r, withReplacement, rows);
      return reshape(indexSelect(x, tensor(places), { dim: 0 }), [rows, r]);
    }),
  );
}
combinations.method = "same" as const;
const combinationsParameters = parameters("combinations", {
  x: operand(aTensor),
  r: optional(aNumber({ holds: (r) => Number.isInteger(r) && r >= 0, expected: "a whole number of at least 0" }), 2),
  withReplacement: optional(flag, false),
});

/** The maximum number of positions, which are listed before the elements are gathered. */
const MOST_PLACES = 2 ** 27;

/** Computes n! / (r! (n − r)!). */
function countOf(n: number, r: number): number {
  if (r > n) return r === 0 ? 1 : 0;
  let count = 1;
  for (let k = 1; k <= Math.min(r, n - r); k++) count = Math.round((count * (n - k + 1)) / k);
  return count;
}

/**
 * Lists the positions of all combinations. Positions ascend within a row; the next row increments the last position
 * that can be incremented.
 */
function placesOf(size: number, r: number, withReplacement: boolean, rows: number): Int32Array {
  const places = new Int32Array(rows * r);
  const apart = withReplacement ? 0 : 1;
  const row = Array.from({ length: r }, (_, at) => at * apart);
  for (let start = 0; start < places.length; ) {
    // all rows that differ only in their last element
    for (let last = row[r - 1]; last < size; last++, start += r) {
      for (let at = 0; at < r - 1; at++) places[start + at] = row[at];
      places[start + r - 1] = last;
    }
    let raised = r - 2;
    while (raised >= 0 && row[raised] === size - 1 - (r - 1 - raised) * apart) raised--;
    for (let at = raised, next = (row[raised] ?? 0) + 1; at >= 0 && at < r; at++, next += apart) row[at] = next;
  }
  return places;
}
