/** Views of a value as nodes: reshaping, slices, permutations and expansion. */
import type { Layout } from "./recorder.ts";

/** A node of a view. `sizes` may depend on sizes of the inputs. */
export type ViewStep =
  | { readonly operator: "Reshape" | "Expand"; readonly sizes: readonly number[] }
  | { readonly operator: "Transpose"; readonly permutation: readonly number[] }
  | {
      readonly operator: "Gather";
      readonly axis: number;
      readonly places: readonly number[];
      /** The shape of the indices. */
      readonly shape: readonly number[];
    }
  | {
      readonly operator: "Slice";
      readonly axes: readonly number[];
      readonly starts: readonly number[];
      readonly ends: readonly number[];
      /** The step along each axis. Default: 1. */
      readonly steps?: readonly number[];
    };

/** An axis of a dense value. Axes are in memory order. */
export interface Axis {
  readonly size: number;
  readonly stride: number;
}

/**
 * Returns the steps from a dense value to a view of it; undefined if there are none, such as for windows that overlap.
 *
 * The value's axes are split until each stride of the view is the stride of an axis. Each axis of the view is then a
 * part of one split axis, or several whole ones.
 */
export function viewSteps(base: Layout, { shape, strides, offset }: Layout): readonly ViewStep[] | undefined {
  const reversed = shape.flatMap((size, axis) => (size > 1 && strides[axis] < 0 ? [axis] : []));
  const start = reversed.reduce((sum, axis) => sum + strides[axis] * (shape[axis] - 1), offset);
  const steps = forwardSteps(base, { shape, strides: strides.map(Math.abs), offset: start });
  if (!steps || reversed.length === 0) return steps;
  const each = (value: number) => reversed.map(() => value);
  return [...steps, { operator: "Slice", axes: reversed, starts: each(-1), ends: each(-(2 ** 31)), steps: each(-1) }];
}

/** As {@link viewSteps}, for a view without negative strides. */
function forwardSteps(base: Layout, view: Layout): readonly ViewStep[] | undefined {
  const order = base.shape.map((_, axis) => axis).sort((a, b) => base.strides[b] - base.strides[a] || a - b);
  const physical = order.map((axis) => ({ size: base.shape[axis], stride: base.strides[axis] }));
  const wanted = view.shape.map((size, axis) => ({ size, stride: size === 1 ? 0 : view.strides[axis] }));
  const axes = split(physical, wanted);
  if (!axes) return undefined;
  const groups = wanted.map((axis) => (axis.stride === 0 ? [] : groupOf(axes, axis)));
  if (groups.some((group) => group === undefined)) return undefined;
  const used = (groups as Part[][]).flat();
  if (new Set(used.map(({ axis }) => axis)).size !== used.length) return undefined;
  const slice = sliceOf(axes, used, view.offset - base.offset);
  if (!slice) return undefined;
  const rest = axes.flatMap((_, axis) => (used.some((part) => part.axis === axis) ? [] : [axis]));
  const permutation = [...used.map(({ axis }) => axis), ...rest];
  const lengths = slice.ends.map((end, axis) => end - slice.starts[axis]);
  const unexpanded = wanted.map(({ size, stride }) => (stride === 0 ? 1 : size));
  return [
    ...transposition(order),
    ...reshaping(
      physical.map(({ size }) => size),
      axes.map(({ size }) => size),
    ),
    ...slicing(axes, slice),
    ...transposition(permutation),
    ...reshaping(
      permutation.map((axis) => lengths[axis]),
      unexpanded,
    ),
    ...(`${unexpanded}` === `${view.shape}` ? [] : [{ operator: "Expand" as const, sizes: view.shape }]),
  ];
}

const transposition = (permutation: readonly number[]): ViewStep[] =>
  permutation.every((axis, at) => axis === at) ? [] : [{ operator: "Transpose", permutation }];

const reshaping = (from: readonly number[], to: readonly number[]): ViewStep[] =>
  `${from}` === `${to}` ? [] : [{ operator: "Reshape", sizes: to }];

function slicing(axes: readonly Axis[], { starts, ends }: Range): ViewStep[] {
  const cut = axes.flatMap(({ size }, axis) => (starts[axis] === 0 && ends[axis] === size ? [] : [axis]));
  const of = (list: readonly number[]) => cut.map((axis) => list[axis]);
  return cut.length === 0 ? [] : [{ operator: "Slice", axes: cut, starts: of(starts), ends: of(ends) }];
}

/** Splits axes at the strides of views; undefined if a stride does not divide the next larger one. */
export function split(physical: readonly Axis[], wanted: readonly Axis[]): Axis[] | undefined {
  const result: Axis[] = [];
  for (const { size, stride } of physical) {
    const inside = wanted.flatMap((axis) =>
      axis.size > 1 && axis.stride > stride && axis.stride < size * stride ? [axis.stride] : [],
    );
    let upper = size * stride;
    for (const cut of [...new Set(inside)].sort((a, b) => b - a)) {
      if (upper % cut !== 0) return undefined;
      result.push({ size: upper / cut, stride: cut });
      upper = cut;
    }
    if (upper % stride !== 0) return undefined;
    result.push({ size: upper / stride, stride });
  }
  return result;
}

/** A split axis, and how many elements of it the view has. */
export interface Part {
  readonly axis: number;
  readonly length: number;
}

/** Returns the split axes that an axis of the view consists of, the outermost first. */
export function groupOf(axes: readonly Axis[], { size, stride }: Axis): Part[] | undefined {
  let at = axes.findLastIndex((axis) => axis.stride === stride && axis.size > 1);
  const parts: Part[] = [];
  for (let rest = size; rest > 1 || parts.length === 0; at--) {
    const axis = axes[at];
    if (!axis) return undefined;
    const length = Math.min(rest, axis.size);
    if (rest % length !== 0) return undefined;
    parts.unshift({ axis: at, length });
    rest /= length;
  }
  return parts;
}

export interface Range {
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/** Returns the range of each split axis; an axis that the view lacks has one element. */
export function sliceOf(axes: readonly Axis[], used: readonly Part[], offset: number): Range | undefined {
  let rest = offset;
  const starts = axes.map(({ size, stride }) => {
    const start = size === 1 ? 0 : Math.floor(rest / stride);
    rest -= start * stride;
    return start;
  });
  const ends = starts.map((start, at) => start + (used.find(({ axis }) => axis === at)?.length ?? 1));
  return rest === 0 && ends.every((end, at) => end <= axes[at].size) ? { starts, ends } : undefined;
}

/** Returns the positions in memory of a layout's elements, in row-major order. */
export function placesOf({ shape, strides, offset }: Layout): number[] {
  let places = [offset];
  for (const [axis, size] of shape.entries())
    places = places.flatMap((place) => Array.from({ length: size }, (_, at) => place + at * strides[axis]));
  return places;
}

/** A layout of equal blocks along its first axis. */
interface Blocks {
  readonly rows: number;
  /** The number of elements of a block. */
  readonly length: number;
  /** The layout in each block. */
  readonly inner: Layout;
}

/**
 * Splits a layout of `count` elements into blocks, one for each index of the first axis. Undefined if blocks overlap.
 */
export function blocksOf({ shape, strides, offset }: Layout, count: number): Blocks | undefined {
  const [rows = 1, length = 0] = [shape[0], strides[0]];
  const inner = { shape: shape.slice(1), strides: strides.slice(1), offset };
  const extents = inner.shape.map((size, axis) => (size - 1) * inner.strides[axis]);
  const least = extents.reduce((sum, each) => sum + Math.min(each, 0), offset);
  const most = extents.reduce((sum, each) => sum + Math.max(each, 0), offset);
  const isBlocks = shape.length > 1 && rows > 1 && rows * length === count && least >= 0 && most < length;
  return isBlocks ? { rows, length, inner } : undefined;
}

/**
 * Returns the steps to a view whose elements overlap or are in another order than in any slice. Their positions become
 * constants. If the first axis separates equal blocks, it remains an axis, and its size may vary.
 */
export function gatheredView(base: Layout, { shape, strides, offset }: Layout): readonly ViewStep[] {
  const order = base.shape.map((_, axis) => axis).sort((a, b) => base.strides[b] - base.strides[a] || a - b);
  const count = base.shape.reduce((product, size) => product * size, 1);
  const view = { shape, strides, offset: offset - base.offset };
  const blocks = blocksOf(view, count);
  if (!blocks)
    return [
      ...transposition(order),
      { operator: "Reshape", sizes: [count] },
      { operator: "Gather", axis: 0, places: placesOf(view), shape },
    ];
  const { rows, length, inner } = blocks;
  return [
    ...transposition(order),
    { operator: "Reshape", sizes: [rows, length] },
    { operator: "Gather", axis: 1, places: placesOf(inner), shape: inner.shape },
  ];
}
