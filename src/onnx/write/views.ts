/** Views of a value as nodes: reshaping, slices, permutations and expansion. */
import type { Layout } from "./recorder.ts";

/** A node of a view. `sizes` may depend on sizes of the inputs. */
export type ViewStep =
  | { readonly operator: "Reshape" | "Expand"; readonly sizes: readonly number[] }
  | { readonly operator: "Transpose"; readonly permutation: readonly number[] }
  | {
      readonly operator: "Slice";
      readonly axes: readonly number[];
      readonly starts: readonly number[];
      readonly ends: readonly number[];
    };

interface Axis {
  readonly size: number;
  readonly stride: number;
}

/**
 * Returns the steps from a dense value to a view of it; undefined if there are none, such as for windows that overlap.
 *
 * The value's axes are split so that each stride of the view is that of an axis. An axis of the view is then a part of
 * one of these, or several whole ones.
 */
export function viewSteps(base: Layout, view: Layout): readonly ViewStep[] | undefined {
  const order = base.shape.map((_, axis) => axis).sort((a, b) => base.strides[b]! - base.strides[a]! || a - b);
  const physical = order.map((axis) => ({ size: base.shape[axis]!, stride: base.strides[axis]! }));
  const wanted = view.shape.map((size, axis) => ({ size, stride: size === 1 ? 0 : view.strides[axis]! }));
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
  const lengths = slice.ends.map((end, axis) => end - slice.starts[axis]!);
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
      permutation.map((axis) => lengths[axis]!),
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
  const of = (list: readonly number[]) => cut.map((axis) => list[axis]!);
  return cut.length === 0 ? [] : [{ operator: "Slice", axes: cut, starts: of(starts), ends: of(ends) }];
}

/** Splits axes at the strides of the view. */
function split(physical: readonly Axis[], wanted: readonly Axis[]): Axis[] | undefined {
  const result: Axis[] = [];
  for (const { size, stride } of physical) {
    const inside = wanted.map((axis) => axis.stride).filter((each) => each > stride && each < size * stride);
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
interface Part {
  readonly axis: number;
  readonly length: number;
}

/** Returns the split axes that an axis of the view consists of, the outermost first. */
function groupOf(axes: readonly Axis[], { size, stride }: Axis): Part[] | undefined {
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

interface Range {
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/** Returns the range of each split axis; an axis that the view lacks has one element. */
function sliceOf(axes: readonly Axis[], used: readonly Part[], offset: number): Range | undefined {
  let rest = offset;
  const starts = axes.map(({ size, stride }) => {
    const start = size === 1 ? 0 : Math.floor(rest / stride);
    rest -= start * stride;
    return start;
  });
  const ends = starts.map((start, at) => start + (used.find(({ axis }) => axis === at)?.length ?? 1));
  return rest === 0 && ends.every((end, at) => end <= axes[at]!.size) ? { starts, ends } : undefined;
}
