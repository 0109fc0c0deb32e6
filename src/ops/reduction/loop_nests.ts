import { plainList } from "../../tensor/frozen.ts";
import { collapse, type LoopNest, rowMajorStrides } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** The two loop nests of a reduction: over the results, and over the elements of one result. */
export interface ReductionNests {
  /** Strides of the input, then of the results. */
  readonly kept: LoopNest;
  /** Strides of the input. */
  readonly reduced: LoopNest;
}

/**
 * Splits a tensor's axes into kept ones and reduced ones. Axes are sorted by stride, so that what is adjacent in
 * memory is innermost; with `isOrdered` the reduced ones stay in order, for reductions that give an index. Results are
 * row-major: `execute` allocates them.
 */
export function reductionNests(input: Tensor, axes: readonly number[], isOrdered = false): ReductionNests {
  const reducedAxes = new Set(axes);
  const strides = plainList(input.strides);
  const all = plainList(input.shape).map((size, axis) => ({ size, stride: strides[axis]!, axis, out: 0 }));
  const kept = all.filter(({ axis }) => !reducedAxes.has(axis));
  const outStrides = rowMajorStrides(kept.map(({ size }) => size));
  for (const [index, axis] of kept.entries()) axis.out = outStrides[index]!;
  const reduced = all.filter(({ axis }) => reducedAxes.has(axis));
  if (!isOrdered) reduced.sort(byStride);
  kept.sort(byStride);
  return {
    kept: collapse(
      kept.map(({ size }) => size),
      [kept.map(({ stride }) => stride), kept.map(({ out }) => out)],
    ),
    reduced: collapse(
      reduced.map(({ size }) => size),
      [reduced.map(({ stride }) => stride)],
    ),
  };
}

/** Larger strides first; repeated axes, whose stride is 0, before all others. */
const byStride = (a: { stride: number }, b: { stride: number }): number => distance(b) - distance(a);
const distance = ({ stride }: { stride: number }): number =>
  stride === 0 ? Number.MAX_SAFE_INTEGER : Math.abs(stride);
