/** Index parsing as in NumPy: the kinds of indices, and the effect of each on the axes of a tensor. */
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { isArray, listOf, someNumber } from "../../core/kinds.ts";
import type { Kind } from "../../core/parameters.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { broadcastShapes, elementCount, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tensor } from "../creation/tensor.ts";
import { movedim } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { select, slice } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";
import type { IndexDType } from "./indices.ts";
import { coordinatesOfSet, hasMasks } from "./masks.ts";
import { coordinatesOf, placesOf } from "./nonzero.ts";
import { placesAmong } from "./places.ts";

/** Start, end and step along an axis. */
export interface SliceBounds {
  readonly start?: number | null | undefined;
  readonly end?: number | null | undefined;
  readonly step?: number | undefined;
}

/**
 * One index of `at`: a number, which removes an axis; bounds, or a string such as `"1:"`, `":-1"` or `"::2"`; `null`,
 * which adds an axis; `"..."`, which stands for all axes that are not indexed; integers, in a tensor or a list; or a
 * mask of bools, which indexes as many axes as it has.
 */
export type Index = number | string | null | SliceBounds | Tensor | readonly number[];

const isBounds = (value: unknown): value is SliceBounds =>
  typeof value === "object" &&
  value !== null &&
  Object.entries(value).every(
    ([name, bound]) =>
      ["start", "end", "step"].includes(name) && (bound === undefined || bound === null || typeof bound === "number"),
  );

const numbers = listOf(someNumber, "a list of numbers");

const oneIndex = (value: unknown, operation: string): Index | undefined => {
  if (value === null || typeof value === "number" || typeof value === "string") return value;
  if (Tensor.isTensor(value)) return aTensor.parse(value, operation, "indices");
  if (isArray(value)) return numbers.parse(value, operation, "indices");
  return isBounds(value) ? { ...value } : undefined;
};

const KINDS = 'numbers, bounds, strings such as "1:", null, tensors or lists of numbers';

export const indexList: Kind<Index[]> = listOf<Index>({ expected: KINDS, parse: oneIndex }, KINDS);

/** The effect of an index on the axes that it indexes. */
export type Step =
  | { readonly at: number }
  | { readonly bounds: SliceBounds }
  | { readonly add: true }
  | { readonly list: Tensor };

/** Parses the indices and expands `"..."`. */
export function completed(operation: string, x: Tensor, indices: readonly Index[]): Step[] {
  const steps = indices.map((index) => (index === "..." ? index : stepOf(operation, index)));
  if (steps.filter((step) => step === "...").length > 1)
    throw new ArgumentError(operation, "twoEllipses", 'expected at most one "...", got several');
  const used = steps.reduce((sum, step) => sum + (step === "..." ? 0 : axesOf(step)), 0);
  if (used > x.rank)
    throw new ShapeError(
      operation,
      "tooManyIndices",
      `expected at most ${x.rank} indices for ${x.describe()}, got ${used}`,
    );
  const whole = new Array<Step>(x.rank - used).fill({ bounds: {} });
  return steps.flatMap((step) => (step === "..." ? whole : [step]));
}

const axesOf = (step: Step): number =>
  "add" in step ? 0 : "list" in step && step.list.dtype === "bool" ? step.list.rank : 1;

function stepOf(operation: string, index: Exclude<Index, "...">): Step {
  if (index === null) return { add: true };
  if (typeof index === "number") return { at: index };
  if (typeof index === "string") return { bounds: boundsOf(operation, index) };
  if (index instanceof Tensor) {
    if (isFloat(index.dtype))
      throw new DTypeError(
        operation,
        "notAnIndex",
        `expected indices to be integers or a mask, got ${index.describe()}`,
      );
    return { list: index };
  }
  if (isArray(index)) return { list: tensor(BigInt64Array.from(index, (each) => wholeIndex(operation, each))) };
  return { bounds: index };
}

function wholeIndex(operation: string, value: number): bigint {
  if (Number.isSafeInteger(value)) return BigInt(value);
  throw new ArgumentError(operation, "invalidIndex", `expected an index to be a whole number, got ${value}`);
}

/** Parses bounds such as `"1:-1:2"`. */
function boundsOf(operation: string, text: string): SliceBounds {
  const parts = /^\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(?::\s*(-?\d+)?\s*)?$/.exec(text);
  if (!parts)
    throw new ArgumentError(
      operation,
      "invalidBounds",
      `expected indices to be bounds such as "1:", ":-1" or "::2", got ${describeValue(text)}`,
    );
  const [start, end, step] = parts.slice(1).map((part) => (part === undefined ? undefined : Number(part)));
  return { start, end, ...(step !== undefined && { step }) };
}

/** An integer tensor and the axis of the view that it indexes. */
export interface ListedAxis {
  readonly axis: number;
  readonly index: Tensor<IndexDType>;
}

/** Applies numbers, bounds and new axes to x. Returns the view, and the index tensors that remain to be applied. */
export function basicView(operation: string, x: Tensor, steps: readonly Step[]): { view: Tensor; lists: ListedAxis[] } {
  let view = x;
  let axis = 0;
  const lists: ListedAxis[] = [];
  for (const step of steps) {
    if ("at" in step) view = selected(operation, x, view, axis, step.at);
    else if ("add" in step) view = unsqueeze(view, axis++);
    else if ("bounds" in step) {
      const { start = null, end = null, step: every = 1 } = step.bounds;
      if (!Number.isSafeInteger(every) || every < 1)
        throw new ArgumentError(
          operation,
          "invalidStep",
          `expected a step of at least 1, got ${every}; flip reverses an axis`,
        );
      for (const bound of [start, end])
        if (bound !== null && !Number.isInteger(bound) && Number.isFinite(bound))
          throw new ArgumentError(operation, "invalidBounds", `expected bounds to be whole numbers, got ${bound}`);
      view = slice(view, { dim: axis++, start, end, step: every });
    } else
      for (const index of step.list.dtype === "bool" ? coordinatesIn(operation, view, axis, step.list) : [step.list])
        lists.push({ axis: axis++, index: index as Tensor<IndexDType> });
  }
  return { view, lists };
}

function selected(operation: string, x: Tensor, view: Tensor, axis: number, index: number): Tensor {
  const size = view.shape[axis];
  if (Number.isInteger(index) && index >= -size && index < size) return select(view, axis, index);
  throw new ShapeError(
    operation,
    "indexOutOfRange",
    `expected indices of ${-size} to ${size - 1} for an axis of ${x.describe()}, got ${index}`,
  );
}

/** For each axis of a mask, the coordinates of its true elements. */
function coordinatesIn(operation: string, view: Tensor, axis: number, mask: Tensor): Tensor[] {
  const sizes = view.shape.slice(axis, axis + mask.rank);
  if (sizes.length !== mask.rank || sizes.some((size, at) => size !== mask.shape[at]))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected a mask in indices to have the shape [${sizes.join(", ")}] of its axes, got ${mask.describe()}`,
    );
  if (hasMasks()) {
    const coordinates = coordinatesOfSet(operation, mask, mask.shape);
    return mask.shape.map((_, at) => select(coordinates, 1, at));
  }
  const places = placesOf(mask);
  return mask.shape.map((_, at) => tensor(coordinatesOf(places, mask.shape, [at])));
}

/**
 * Integer tensors combined into one index into rows. The indexed axes are moved first and merged into one axis of rows.
 */
export interface Rows {
  /** The view with the indexed axes merged into one: [rows, …others]. */
  readonly rows: Tensor;
  /** For each element of the index, its row in row-major order. */
  readonly places: Tensor<"int64">;
  /** The broadcast shape of the index tensors. */
  readonly shape: Shape;
  /** The axes of the view that are not indexed. */
  readonly others: Shape;
  /** The shape of the indexed elements: the axes of the index and the other axes, in the result's order. */
  readonly placedShape: Shape;
  /** Moves the axes of the index from the front to their place in the result. */
  readonly placed: (taken: Tensor) => Tensor;
  /** The inverse of `placed`. */
  readonly first: (given: Tensor) => Tensor;
  /** Reshapes and permutes `rows` back to the view. */
  readonly asView: (rows: Tensor) => Tensor;
}

/** Combines index tensors of a view into one index into rows. */
export function rowsOf(operation: string, view: Tensor, lists: readonly ListedAxis[]): Rows {
  const indices = lists.map(({ index }) => index);
  const shape = broadcastShapes(operation, ...indices.map((index) => index.shape));
  const axes = lists.map(({ axis }) => axis);
  const leading = axes.map((_, at) => at);
  const sizes = axes.map((axis) => view.shape[axis]);
  const together = movedim(view, axes, leading);
  const others = together.shape.slice(axes.length);
  const isAdjacent = axes.every((axis, at) => axis === axes[0] + at);
  const start = isAdjacent ? axes[0] : 0;
  const front = shape.map((_, at) => at);
  const moved = front.map((at) => at + start);
  return {
    rows: reshape(together, [elementCount(sizes), ...others]),
    places: reshape(placesAmong(operation, indices, sizes, shape), [elementCount(shape)]),
    shape,
    others,
    placedShape: [...others.slice(0, start), ...shape, ...others.slice(start)],
    placed: (taken) => (start === 0 ? taken : movedim(taken, front, moved)),
    first: (given) => (start === 0 ? given : movedim(given, moved, front)),
    asView: (rows) => movedim(reshape(rows, together.shape), leading, axes),
  };
}

/**
 * If the only index is a vector for the first axis, which is the usual case, returns the vector: it selects whole rows.
 */
export function onlyVector([first, ...others]: readonly Step[]): Tensor<IndexDType> | undefined {
  const index = first !== undefined && "list" in first ? first.list : undefined;
  if (index === undefined || index.dtype === "bool" || index.rank !== 1) return undefined;
  return others.every(isWholeAxis) ? (index as Tensor<IndexDType>) : undefined;
}

/** Whether a step keeps an axis as it is. */
export const isWholeAxis = (step: Step): boolean =>
  "bounds" in step && (step.bounds.start ?? null) === null && (step.bounds.end ?? null) === null && !step.bounds.step;
