import { plainList, serialOf } from "../../tensor/frozen.ts";
import { collapse, type LoopNest, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** The two loop nests of a reduction: over the results, and over the elements of one result. */
export interface ReductionNests {
  /** The loop over results, with the strides of the input, then of the results. */
  readonly kept: LoopNest;
  /** The loop over the elements of one result, with the strides of the input. */
  readonly reduced: LoopNest;
}

/**
 * Splits a tensor's axes into kept and reduced ones. Axes are sorted by stride so that adjacent elements are innermost.
 * With `isOrdered` the reduced axes keep their order, for reductions that return an index. Results are row-major, as
 * `execute` allocates them.
 */
export function reductionNests({ shape, strides }: Tensor, axes: readonly number[], isOrdered = false): ReductionNests {
  let key = isOrdered ? 1 : 0;
  for (let at = 0; at < axes.length; at++) key |= 2 << axes[at];
  const hash = Math.imul(Math.imul(serialOf(shape), 0x9e3779b1) ^ serialOf(strides), 0x9e3779b1) + key;
  const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1);
  const found = known[slot]!;
  if (found !== null && found.shape === shape && found.strides === strides && found.key === key) return found.nests;
  const nests = split(shape, strides, axes, isOrdered);
  known[slot] = { shape, strides, key, nests };
  return nests;
}

/** Number of cached pairs of nests, one per hash. A small sum would spend a third of its time on computing them. */
const SLOTS = 256;
const known = new Array<Known | null>(SLOTS).fill(null);

/** Nests and the arguments that they were computed from. */
interface Known {
  readonly shape: Shape;
  readonly strides: readonly number[];
  readonly key: number;
  readonly nests: ReductionNests;
}

function split(shape: Shape, steps: readonly number[], axes: readonly number[], isOrdered: boolean): ReductionNests {
  const [sizes, strides] = [plainList(shape), plainList(steps)];
  const [kept, reduced]: [number[], number[]] = [[], []];
  for (let axis = 0; axis < sizes.length; axis++) (axes.includes(axis) ? reduced : kept).push(axis);
  const outStrides = resultStrides(sizes, kept);
  const outward = (a: number, b: number): number => distance(strides[b]) - distance(strides[a]);
  if (!isOrdered && reduced.length > 1) reduced.sort(outward);
  if (kept.length > 1) kept.sort(outward);
  return {
    kept: collapse(pick(sizes, kept), [pick(strides, kept), pick(outStrides, kept)]),
    reduced: collapse(pick(sizes, reduced), [pick(strides, reduced)]),
  };
}

/** Returns the strides of a row-major result along the kept axes of its operand. */
function resultStrides(sizes: readonly number[], kept: readonly number[]): number[] {
  const strides = new Array<number>(sizes.length).fill(0);
  let stride = 1;
  for (let index = kept.length - 1; index >= 0; index--) {
    strides[kept[index]] = stride;
    stride *= Math.max(sizes[kept[index]], 1);
  }
  return strides;
}

const pick = (list: readonly number[], axes: readonly number[]): number[] => axes.map((axis) => list[axis]);

/** Sort key: larger strides are outermost, and axes of stride 0 come first. */
const distance = (stride: number): number => (stride === 0 ? Number.MAX_SAFE_INTEGER : Math.abs(stride));
