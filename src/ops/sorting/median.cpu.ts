/** Medians and the k-th smallest elements as one call of the cpu backend, which selects instead of sorting. */
import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { array, dtype, flag, whole } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";

export interface MedianAttributes {
  readonly axis: number;
  readonly skipsNan: boolean;
  /** The position in ascending order, from 1 on; 0 selects the median. */
  readonly kth: number;
}

const medianCall = cpuCall(
  "median",
  { dtype, skipsNan: flag, kth: whole, slices: slices(1), offsets: array(whole, 2) },
  ["x", "values", "indices"],
);

const medianCpu: Implementation<MedianAttributes, [Tensor], [Tensor, Tensor]> = {
  run({ operation, inputs: [x], outputs: [values, indices], attributes: { axis, skipsNan, kth } }) {
    const offsets = [values.offset, indices.offset];
    const block = { dtype: x.dtype, skipsNan, kth, slices: slicesOf([x], axis, { isOrdered: true }), offsets };
    medianCall(operation, block, [x, values, indices]);
  },
};

const medianPrimitive = definePrimitive<MedianAttributes>({
  name: "median",
  family: "sorting",
  implementations: { metal: onlyCpuFuses, cpu: medianCpu, reference: onlyCpuFuses },
});

/** Whether {@link medians} applies. */
export const fusesMedian = (x: Tensor): boolean =>
  firstBackend() === "cpu" && capturing() === undefined && liftingOf([x], undefined) === undefined;

/** Returns one element of each slice along an axis, which gets size 1, and their indices. Neither is recorded. */
export function medians(operation: string, x: Tensor, attributes: MedianAttributes): [Tensor, Tensor<"int64">] {
  const shape = x.shape.with(attributes.axis, 1);
  const specs = [
    { shape, dtype: x.dtype },
    { shape, dtype: "int64" },
  ] as const;
  return executeMany(medianPrimitive, [x], specs, attributes, operation);
}
