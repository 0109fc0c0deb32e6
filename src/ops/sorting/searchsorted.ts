/** Positions of values in sorted elements. */

import { noGrad } from "../../autograd/modes.ts";
import type { Implementation } from "../../backend/backend.ts";
import { execute, underName } from "../../backend/dispatch.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { lastElement } from "../../core/collections.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { choice, flag } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { aTensor, tensorOrScalar } from "../../tensor/kinds.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { full } from "../creation/full.ts";
import { add } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { ge, gt, lt } from "../elementwise/comparison.ts";
import { floorDivide } from "../elementwise/division.ts";
import { logicalAnd, logicalNot } from "../elementwise/logic.ts";
import { where } from "../elementwise/where.ts";
import { gather } from "../indexing/gather.ts";
import { anIndex, type IndexDType } from "../indexing/indices.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { searchSortedCall } from "./primitive.ts";

/** Options of {@link searchsorted} and {@link bucketize}. */
export interface SearchOptions {
  /** Whether a value goes after elements that equal it. Default false. */
  right?: boolean | undefined;
  /** Whether the result is int32. Default false: int64. */
  outInt32?: boolean | undefined;
}

/** Options of {@link searchsorted}. */
export interface SearchsortedOptions extends SearchOptions {
  /** `"right"` is the same as `right: true`, and `"left"` as `right: false`. */
  side?: "left" | "right" | undefined;
  /** The indices that sort `sorted` along its last axis, if it is not sorted: the result of `argsort`. */
  sorter?: Tensor<IndexDType> | undefined;
}

/**
 * Returns the positions at which to insert values so that the last axis stays sorted: the number of elements below each
 * value (or at most equal to it, with `right`). NaN counts as larger than all numbers.
 *
 * @param sorted […, n], in ascending order along the last axis; or one vector for all values
 * @param values […, m] with the same leading axes; any shape if `sorted` is a vector; or a number
 * @returns int64 of the values' shape, from 0 to n
 *
 * @example
 * searchsorted(tensor([1, 3, 5]), tensor([0, 3, 6])); // int64 [0, 1, 3]
 * searchsorted(tensor([1, 3, 5]), 3, { right: true }); // int64 2
 *
 * @throws {ShapeError} if leading axes differ.
 * @throws {DTypeError} for bools, or if dtypes differ.
 */
export function searchsorted(
  sorted: Tensor,
  values: Tensor | Scalar,
  options: SearchsortedOptions & { readonly outInt32: true },
): Tensor<"int32">;
export function searchsorted(
  sorted: Tensor,
  values: Tensor | Scalar,
  ...options: Given<SearchsortedOptions, ["right"]>
): Tensor<"int64">;
export function searchsorted(...given: unknown[]): Tensor {
  const { sorted, values, right, side, sorter, outInt32 } = searchsortedParameters(given);
  const ordered = sorter === undefined ? sorted : gather(sorted, -1, sorter);
  return inDType(places("searchsorted", ordered, values, side === undefined ? right : side === "right"), outInt32);
}
const searchsortedParameters = parameters("searchsorted", {
  sorted: operand(aTensor),
  values: operand(tensorOrScalar),
  right: optional(flag, false),
  side: named(choice("left", "right")),
  sorter: named(anIndex),
  outInt32: named(flag, false),
});

/**
 * Returns the bucket of each element, given boundaries in ascending order; see {@link searchsorted}.
 *
 * @param boundaries a vector
 * @returns a tensor of x's shape
 *
 * @example
 * bucketize(tensor([0.5, 2, 9]), tensor([1, 2, 3])); // int64 [0, 1, 3]
 *
 * @throws {ShapeError} if the boundaries are not a vector.
 * @throws {DTypeError} for bools, or if dtypes differ.
 */
export function bucketize(x: Tensor, boundaries: Tensor, ...options: Given<SearchOptions, ["right"]>): Tensor<"int64">;
export function bucketize(...given: unknown[]): Tensor {
  const { x, boundaries, right, outInt32 } = bucketizeParameters(given);
  if (boundaries.rank !== 1)
    throw new ShapeError("bucketize", "wrongRank", `expected a vector of boundaries, got ${boundaries.describe()}`);
  return inDType(places("bucketize", boundaries, x, right), outInt32);
}
bucketize.method = "int64" as const;
const bucketizeParameters = parameters("bucketize", {
  x: operand(aTensor),
  boundaries: operand(aTensor),
  right: optional(flag, false),
  outInt32: named(flag, false),
});

const inDType = (found: Tensor<"int64">, outInt32: boolean): Tensor => toDType(found, outInt32 ? "int32" : "int64");

interface SearchAttributes {
  readonly right: boolean;
}

const searchCpu: Implementation<SearchAttributes> = {
  run({ operation, inputs, outputs: [places], attributes: { right } }) {
    const [sorted, values] = tupleOf(inputs, 2);
    const size = lastElement(sorted.shape);
    const lists = sorted.size / size;
    const offsets = [sorted.offset, values.offset, places.offset];
    const block = { dtype: sorted.dtype, lists, size, count: values.size / lists, right, offsets };
    searchSortedCall(operation, block, [sorted, values, places]);
  },
};

const searchPrimitive = definePrimitive<SearchAttributes>({
  name: "searchSorted",
  family: "sorting",
  implementations: { metal: onlyCpuFuses, cpu: searchCpu, reference: onlyCpuFuses },
});

/** Searches each value separately, on the cpu backend. There must be sorted elements. */
const searched = (operation: string, sorted: Tensor, values: Tensor, right: boolean): Tensor<"int64"> =>
  execute(searchPrimitive, [contiguous(sorted), contiguous(values)], values.shape, "int64", { right }, operation);

/** Whether one native call searches the operands as they are. */
const isPlainSearch = (sorted: Tensor, wanted: Tensor): boolean =>
  firstBackend() === "cpu" &&
  sorted.size > 0 &&
  sorted.isContiguous &&
  wanted.isContiguous &&
  liftingOf([sorted, wanted], undefined) === undefined;

/** Searches by bisection in log₂(n + 1) steps, for all values at once. */
function places(operation: string, sorted: Tensor, values: Tensor | Scalar, right: boolean): Tensor<"int64"> {
  const wanted = checked(operation, sorted, values);
  if (isPlainSearch(sorted, wanted)) return searched(operation, sorted, wanted, right);
  return underName(operation, () =>
    tidy(() =>
      noGrad(() => {
        const size = lastElement(sorted.shape);
        const lead = sorted.shape.slice(0, -1);
        const vector = sorted.rank === 1 ? reshape(wanted, [wanted.size]) : wanted;
        if (firstBackend() === "cpu" && size > 0)
          return reshape(searched(operation, sorted, vector, right), wanted.shape);
        let low = full(vector.shape, 0n, { dtype: "int64" });
        if (size === 0 || vector.size === 0) return reshape(low, wanted.shape);
        let high = full(vector.shape, BigInt(size), { dtype: "int64" });
        for (let left = size; left > 0; left = Math.floor(left / 2)) {
          const middle = floorDivide(add(low, high), 2n);
          const at = clamp(middle, { max: BigInt(size - 1) }) as Tensor<"int64">;
          const element = gather(expand(sorted, [...lead, size]), at, { dim: -1 });
          const isBelow = logicalNot(right ? gt(element, vector) : ge(element, vector));
          const goesOn = logicalAnd(isBelow, lt(middle, high));
          [low, high] = [where(goesOn, add(middle, 1n), low), where(goesOn, high, middle)];
        }
        return reshape(low, wanted.shape);
      }),
    ),
  );
}

function checked(operation: string, sorted: Tensor, values: Tensor | Scalar): Tensor {
  if (sorted.rank === 0)
    throw new ShapeError(operation, "wrongRank", `expected elements along an axis, got ${sorted.describe()}`);
  const wanted = values instanceof Tensor ? values : full([], values, { dtype: sorted.dtype });
  if (sorted.dtype === "bool" || wanted.dtype !== sorted.dtype)
    throw new DTypeError(
      operation,
      "dtypesDiffer",
      `expected numbers of one dtype, got ${sorted.describe()} and ${wanted.describe()}`,
    );
  const fits =
    wanted.rank === sorted.rank && wanted.shape.slice(0, -1).every((size, axis) => size === sorted.shape[axis]);
  if (sorted.rank > 1 && !fits)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected values with the leading axes of ${sorted.describe()}, got ${wanted.describe()}`,
    );
  return wanted;
}
