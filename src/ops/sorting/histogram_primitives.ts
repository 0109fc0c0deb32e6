/**
 * The primitives `histogram`, with inputs x, edges and optional weights, and `bincount`, with x and optional weights:
 * one pass over vectors. On metal they are composed of other operations (`histogram.ts`).
 */

import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { array, dtype, flag, whole } from "../../backend/fields.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { lastElement } from "../../core/collections.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { errorWithRange } from "../indexing/range.cpu.ts";
import { checkRange } from "../indexing/range.reference.ts";

interface HistogramAttributes {
  /** Whether edges are about equally spaced. It affects only the speed of the search for a bin. */
  readonly isEven: boolean;
}

const common = { dtype, outDtype: dtype, count: whole, bins: whole };
const histogramCall = cpuCall(
  "histogram",
  { ...common, offsets: array(whole, 4), strides: array(whole, 4), hasWeights: flag, isEven: flag },
  ["x", "edges", "weights", "output"],
);
const bincountCall = cpuCall(
  "bincount",
  { ...common, offsets: array(whole, 3), strides: array(whole, 3), hasWeights: flag },
  ["x", "weights", "output"],
);

/** The fields that both calls share. Omitted weights get the layout of x. */
const blockOf = (operands: readonly Tensor[], weights: Tensor | undefined) => {
  const [x, output] = [operands[0], lastElement(operands)];
  return {
    dtype: x.dtype,
    outDtype: output.dtype,
    count: x.size,
    bins: output.size,
    offsets: operands.map(({ offset }) => offset),
    strides: operands.map(({ strides }) => strides[0]),
    hasWeights: weights !== undefined,
  };
};

const histogramCpu: Implementation<HistogramAttributes, [Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs: [x, edges, weights], outputs: [output], attributes: { isEven } }) {
    const block = blockOf([x, edges, weights ?? x, output], weights);
    histogramCall(operation, { ...block, isEven }, [x, edges, weights, output]);
  },
};

const bincountCpu: Implementation<undefined, [Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs: [x, weights], outputs: [output] }) {
    const status = bincountCall.status(blockOf([x, weights ?? x, output], weights), [x, weights, output]);
    if (status === 0) return;
    throw errorWithRange(bincountCall.error(operation, status), { operation, index: x, size: output.size });
  },
};

/** Adds 1 or a weight to each element's bin. Elements with bin -1 are skipped. */
function count(bins: ArrayLike<number>, weights: Tensor | undefined, output: Tensor): void {
  if (isFloat(output.dtype)) {
    const sums = new Float64Array(output.size);
    const each = toNumbers(weights!);
    for (let at = 0; at < bins.length; at++) if (bins[at] >= 0) sums[bins[at]] += each[at];
    store(output, sums);
  } else {
    const sums = new Array<bigint>(output.size).fill(0n);
    const each = weights && toIntegers(weights);
    for (let at = 0; at < bins.length; at++) if (bins[at] >= 0) sums[bins[at]] += each?.[at] ?? 1n;
    store(output, sums);
  }
}

const histogramReference: Implementation<HistogramAttributes, [Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  run({ inputs: [x, edges, weights], outputs: [output] }) {
    const bounds = toNumbers(edges);
    const last = bounds.length - 1;
    const binOf = (value: number): number => {
      if (!(value >= bounds[0] && value <= bounds[last])) return -1;
      return value === bounds[last] ? last - 1 : bounds.findLastIndex((bound) => bound <= value);
    };
    count(toNumbers(x).map(binOf), weights, output);
  },
};

const bincountReference: Implementation<undefined, [Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs: [x, weights], outputs: [output] }) {
    checkRange({ operation, index: x, size: output.size });
    count(toNumbers(x), weights, output);
  },
};

export const histogramPrimitive = definePrimitive<HistogramAttributes>({
  name: "histogram",
  family: "sorting",
  implementations: {
    metal: { missing: "metal composes histograms of other operations" },
    cpu: histogramCpu,
    reference: histogramReference,
  },
});

export const bincountPrimitive = definePrimitive({
  name: "bincount",
  family: "sorting",
  implementations: {
    metal: { missing: "metal composes counts of other operations" },
    cpu: bincountCpu,
    reference: bincountReference,
  },
});
