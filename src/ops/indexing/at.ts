import { checkElements, named as underName } from "../../backend/dispatch.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { isArray, listOf, someNumber } from "../../core/kinds.ts";
import { type Kind, operand, parameters } from "../../core/parameters.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { broadcastShapes, elementCount, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { tensor } from "../creation/tensor.ts";
import { add, mul } from "../elementwise/arithmetic.ts";
import { ge, lt } from "../elementwise/comparison.ts";
import { logicalAnd } from "../elementwise/logic.ts";
import { where } from "../elementwise/where.ts";
import { expand } from "../view/expand.ts";
import { movedim } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { select, slice } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { indexSelect } from "./gather.ts";
import type { IndexDType } from "./indices.ts";
import { placesOf } from "./nonzero.ts";

/** From where to where along an axis, and every how many elements. */
export interface SliceBounds {
  readonly start?: number | null | undefined;
  readonly end?: number | null | undefined;
  readonly step?: number | undefined;
}

/**
 * One index of {@link at}: a number, which takes away an axis; bounds, or a text such as `"1:"`, `":-1"` or `"::2"`;
 * `null`, a new axis; `"..."`, all axes that are not named; integers, in a tensor or a list; or a mask of bools, which
 * stands for as many axes as it has.
 */
export type Index = number | string | null | SliceBounds | Tensor | readonly number[];

/**
 * Elements by an index for each axis, as NumPy's and PyTorch's `x[…]`. Numbers, bounds, `null` and `"..."` give a view.
 * Tensors of integers are broadcast to each other and give a copy: their axes stand in the place of those that they
 * index, or first where these are not adjacent. A mask is read, which waits for the device. Negative numbers count from
 * the end.
 *
 * @example
 * const x = tensor([[1, 2, 3], [4, 5, 6]]);
 * x.at(-1, "1:"); // [5, 6]
 * x.at("...", tensor([2n, 0n])); // [[3, 1], [6, 4]]
 * x.at(x.gt(3)); // [4, 5, 6]
 *
 * @throws {ShapeError} for more indices than axes, an index out of range, and tensors that can't be broadcast. @throws
 * {DTypeError} for tensors of floats. @throws {ArgumentError} for a text that is no bounds, and more than one `"..."`.
 */
export function at<D extends DType>(x: Tensor<D>, ...indices: Index[]): Tensor<D>;
export function at(...values: unknown[]): Tensor {
  const { x, indices } = atParameters([values[0], values.slice(1)]); // bounds that come last are no options
  const named = completed(x, indices);
  if (named.some((step) => "list" in step)) checkElements("at", [x]);
  return underName("at", () =>
    tidy(() => {
      const { view, lists } = basicView(x, named);
      return lists.length === 0 ? view : byLists(view, lists);
    }),
  );
}
at.method = "same" as const;

const isBounds = (value: unknown): value is SliceBounds =>
  typeof value === "object" &&
  value !== null &&
  Object.entries(value).every(
    ([name, own]) =>
      ["start", "end", "step"].includes(name) && (own === undefined || own === null || typeof own === "number"),
  );

const numbers = listOf(someNumber, "a list of numbers");

const oneIndex = (value: unknown): Index | undefined => {
  if (value === null || typeof value === "number" || typeof value === "string") return value;
  if (Tensor.isTensor(value)) return aTensor.parse(value, "at", "index");
  if (isArray(value)) return numbers.parse(value, "at", "indices");
  return isBounds(value) ? { ...value } : undefined;
};

const KINDS = 'numbers, bounds, texts such as "1:", null, tensors or lists of numbers';

const indexList: Kind<Index[]> = listOf<Index>({ expected: KINDS, parse: oneIndex }, KINDS);
const atParameters = parameters("at", { x: operand(aTensor), indices: operand(indexList) });

/** What an index does to the axes that it stands for. */
type Step =
  | { readonly at: number }
  | { readonly bounds: SliceBounds }
  | { readonly add: true }
  | { readonly list: Tensor };

/** The indices, with `"..."` written out. */
function completed(x: Tensor, indices: readonly Index[]): Step[] {
  const steps = indices.map((index) => (index === "..." ? index : stepOf(index)));
  if (steps.filter((step) => step === "...").length > 1)
    throw new ArgumentError("at", "twoEllipses", 'expected "..." once at most, got it twice');
  const used = steps.reduce((sum, step) => sum + (step === "..." ? 0 : axesOf(step)), 0);
  if (used > x.rank)
    throw new ShapeError("at", "tooManyIndices", `expected at most ${x.rank} indices for ${x.describe()}, got ${used}`);
  const whole = new Array<Step>(x.rank - used).fill({ bounds: {} });
  return steps.flatMap((step) => (step === "..." ? whole : [step]));
}

const axesOf = (step: Step): number =>
  "add" in step ? 0 : "list" in step && step.list.dtype === "bool" ? step.list.rank : 1;

function stepOf(index: Exclude<Index, "...">): Step {
  if (index === null) return { add: true };
  if (typeof index === "number") return { at: index };
  if (typeof index === "string") return { bounds: boundsOf(index) };
  if (index instanceof Tensor) {
    if (isFloat(index.dtype))
      throw new DTypeError("at", "notAnIndex", `expected indices to be integers or a mask, got ${index.describe()}`);
    return { list: index };
  }
  if (isArray(index)) return { list: tensor(BigInt64Array.from(index as number[], wholeIndex)) };
  return { bounds: index as SliceBounds };
}

function wholeIndex(value: number): bigint {
  if (Number.isSafeInteger(value)) return BigInt(value);
  throw new ArgumentError("at", "invalidIndex", `expected an index to be a whole number, got ${value}`);
}

/** Such as `"1:-1:2"`. */
function boundsOf(text: string): SliceBounds {
  const parts = /^\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(?::\s*(-?\d+)?\s*)?$/.exec(text);
  if (!parts)
    throw new ArgumentError(
      "at",
      "invalidBounds",
      `expected indices to be bounds such as "1:", ":-1" or "::2", got ${describeValue(text)}`,
    );
  const [start, end, step] = parts.slice(1).map((part) => (part === undefined ? undefined : Number(part)));
  return { start, end, ...(step !== undefined && { step }) };
}

/** A tensor of integers, and the axis of the view that it indexes. */
interface ListedAxis {
  readonly axis: number;
  readonly index: Tensor<IndexDType>;
}

/** What numbers, bounds and new axes make of x, and where tensors remain to be applied. */
function basicView(x: Tensor, steps: readonly Step[]): { view: Tensor; lists: ListedAxis[] } {
  let view = x;
  let axis = 0;
  const lists: ListedAxis[] = [];
  for (const step of steps) {
    if ("at" in step) view = selected(x, view, axis, step.at);
    else if ("add" in step) view = unsqueeze(view, axis++);
    else if ("bounds" in step) {
      const { start = null, end = null, step: every = 1 } = step.bounds;
      if (!Number.isSafeInteger(every) || every < 1)
        throw new ArgumentError(
          "at",
          "invalidStep",
          `expected a step of at least 1, got ${every}; flip reverses an axis`,
        );
      for (const own of [start, end])
        if (own !== null && !Number.isInteger(own) && Number.isFinite(own))
          throw new ArgumentError("at", "invalidBounds", `expected bounds to be whole numbers, got ${own}`);
      view = slice(view, { dim: axis++, start, end, step: every });
    } else
      for (const index of step.list.dtype === "bool" ? coordinatesOf(view, axis, step.list) : [step.list])
        lists.push({ axis: axis++, index: index as Tensor<IndexDType> });
  }
  return { view, lists };
}

function selected(x: Tensor, view: Tensor, axis: number, index: number): Tensor {
  const size = view.shape[axis]!;
  if (Number.isInteger(index) && index >= -size && index < size) return select(view, axis, index);
  throw new ShapeError(
    "at",
    "indexOutOfRange",
    `expected indices of ${-size} to ${size - 1} for an axis of ${x.describe()}, got ${index}`,
  );
}

/** For each axis of a mask, the coordinates of the elements that are true. */
function coordinatesOf(view: Tensor, axis: number, mask: Tensor): Tensor[] {
  const own = view.shape.slice(axis, axis + mask.rank);
  if (own.length !== mask.rank || own.some((size, at) => size !== mask.shape[at]))
    throw new ShapeError(
      "at",
      "shapesDiffer",
      `expected indices to have a mask of the axes that it stands for, [${own.join(", ")}], got ${mask.describe()}`,
    );
  const places = placesOf(mask);
  return mask.shape.map((size, at) => {
    const after = BigInt(elementCount(mask.shape.slice(at + 1)));
    return tensor(places.map((place) => (place / after) % BigInt(size)));
  });
}

/** The elements that lists of integers name: one index of all their axes, taken as one. */
function byLists(view: Tensor, lists: readonly ListedAxis[]): Tensor {
  const shape = broadcastShapes("at", ...lists.map(({ index }) => index.shape));
  const axes = lists.map(({ axis }) => axis);
  const sizes = axes.map((axis) => view.shape[axis]!);
  const together = movedim(
    view,
    axes,
    axes.map((_, at) => at),
  );
  const rest = together.shape.slice(axes.length);
  const lines = reshape(together, [elementCount(sizes), ...rest]);
  const places = reshape(expand(placesAmong(lists, sizes), shape), [elementCount(shape)]);
  const taken = reshape(indexSelect(lines, places, { dim: 0 }), [...shape, ...rest]);
  const isAdjacent = axes.every((axis, at) => axis === axes[0]! + at);
  if (!isAdjacent || axes[0] === 0) return taken;
  const own = shape.map((_, at) => at);
  return movedim(
    taken,
    own,
    own.map((at) => at + axes[0]!),
  );
}

/** Row-major among the axes; −1, which is refused, where one index is out of range. */
function placesAmong(lists: readonly ListedAxis[], sizes: Shape): Tensor<"int64"> {
  let places: Tensor | undefined;
  let isRight: Tensor | undefined;
  for (const [at, { index }] of lists.entries()) {
    const size = BigInt(sizes[at]!);
    const given = toDType(index, "int64");
    const own = where(lt(given, 0n), add(given, size), given) as Tensor;
    const inRange = logicalAnd(ge(own, 0n), lt(own, size));
    places = places ? (add(mul(places, size), own) as Tensor) : own;
    isRight = isRight ? logicalAnd(isRight, inRange) : inRange;
  }
  return where(isRight!, places!, -1n) as Tensor<"int64">;
}
