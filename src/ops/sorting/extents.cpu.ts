/** Histograms of intervals of equal width in one call of the cpu backend, and the extents of integers. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { dtype, flag, real, whole } from "../../backend/fields.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import { currentCapture } from "../../observe/capture.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { reshape } from "../view/reshape.ts";

interface EvenHistogramAttributes {
  readonly first: number;
  readonly last: number;
  readonly hasRange: boolean;
  /** Added on both sides if the bounds are equal. */
  readonly margin: number;
}

/** The bounds of more elements are found faster by an operation that uses all threads. */
const MOST_ELEMENTS = 1 << 15;

const sizes = { dtype, count: whole };
const evenHistogramCall = cpuCall(
  "evenHistogram",
  { ...sizes, bins: whole, offset: whole, stride: whole, hasRange: flag, first: real, last: real, margin: real },
  ["x", "hist", "edges", "bounds"],
);
const integerExtentCall = cpuCall("integerExtent", { ...sizes, offset: whole, stride: whole }, ["x", "found"]);

const found = new Float64Array(2);

const layoutOf = (x: Tensor) => ({ dtype: x.dtype, count: x.size, offset: x.offset, stride: x.strides[0] });

const evenHistogramCpu: Implementation<EvenHistogramAttributes, [Tensor], [Tensor, Tensor]> = {
  run({ operation, inputs: [x], outputs: [hist, edges], attributes }) {
    evenHistogramCall(operation, { ...layoutOf(x), bins: hist.size, ...attributes }, [x, hist, edges, found]);
  },
};

const evenHistogramPrimitive = definePrimitive<EvenHistogramAttributes>({
  name: "evenHistogram",
  family: "sorting",
  implementations: { metal: onlyCpuFuses, cpu: evenHistogramCpu, reference: onlyCpuFuses },
});

/** Whether {@link evenHistogram} applies. `compile` does not record it, since the bounds are read on the host. */
export const fusesHistogram = (x: Tensor): boolean =>
  x.size <= MOST_ELEMENTS && currentCapture() === null && fusesOnCpu(x);

/**
 * Counts floats in intervals of equal width. The bounds are those of the range, or of the elements; if they are not
 * finite and ascending, the other results are undefined.
 */
export function evenHistogram(
  operation: string,
  x: Tensor,
  bins: number,
  attributes: EvenHistogramAttributes,
): { hist: Tensor; binEdges: Tensor; bounds: readonly [number, number] } {
  const specs = [bins, bins + 1].map((size) => ({ shape: [size], dtype: x.dtype }));
  const line = x.rank === 1 ? x : reshape(x, [x.size]);
  const [hist, binEdges] = tupleOf(executeMany(evenHistogramPrimitive, [line], specs, attributes, operation), 2);
  return { hist, binEdges, bounds: [found[0], found[1]] };
}

/** Returns the largest of some integers, on the cpu backend; `undefined` if {@link fusesHistogram} does not apply. */
export function largestInteger(operation: string, x: Tensor): number | undefined {
  if (!fusesHistogram(x)) return undefined;
  integerExtentCall(operation, layoutOf(x), [x, found]);
  return found[1];
}
