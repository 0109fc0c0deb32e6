/** Order statistics and runs of sorted elements, in one pass; only the cpu backend has kernels. */
import type { Implementation } from "../../backend/backend.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import { slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { narrow } from "../view/slice.ts";
import { type OrderStatistic, orderStatisticCall, orderStatistics, runsCall } from "./primitive.ts";

interface StatisticAttributes {
  readonly statistic: OrderStatistic;
  readonly dim: number;
}

const statisticCpu: Implementation<StatisticAttributes> = {
  run({ operation, inputs, outputs: [places], attributes: { statistic, dim } }) {
    const [sorted, indices] = tupleOf(inputs, 2);
    const slices = slicesOf([sorted, indices], dim, { isOrdered: true });
    const block = { dtype: sorted.dtype, statistic: orderStatistics[statistic], slices, offset: places.offset };
    orderStatisticCall(operation, block, [sorted, indices, places]);
  },
};

const statisticPrimitive = definePrimitive<StatisticAttributes>({
  name: "orderStatistic",
  family: "sorting",
  implementations: { metal: onlyCpuFuses, cpu: statisticCpu, reference: onlyCpuFuses },
});

/**
 * Returns the index of one element of each slice, with the axis of size 1, on the cpu backend: of the mode the last
 * one, of the median the first NaN if there is one.
 *
 * @param sorted elements in order along the axis, and their indices
 */
export const indicesOf = (
  statistic: OrderStatistic,
  sorted: Tensor,
  indices: Tensor<"int64">,
  dim: number,
): Tensor<"int64"> =>
  execute(statisticPrimitive, [sorted, indices], sorted.shape.with(dim, 1), "int64", { statistic, dim }, statistic);

const found = new Float64Array(1);

const runsCpu: Implementation<undefined> = {
  run({ operation, inputs: [x], outputs: [firsts, begins] }) {
    const offsets = [x.offset, firsts.offset, begins.offset];
    const block = { dtype: x.dtype, count: x.size, stride: x.strides[0], offsets };
    runsCall(operation, block, [x, firsts, begins, found]);
  },
};

const runsPrimitive = definePrimitive({
  name: "runs",
  family: "sorting",
  implementations: { metal: onlyCpuFuses, cpu: runsCpu, reference: onlyCpuFuses },
});

/** Returns the first element of each run of a vector that is not empty, and its position, on the cpu backend. */
export function runsOf(operation: string, x: Tensor): { firsts: Tensor; begins: Tensor<"int64"> } {
  const specs = [{ shape: x.shape, dtype: x.dtype } as const, { shape: x.shape, dtype: "int64" } as const];
  const [firsts, begins] = executeMany(runsPrimitive, [x], specs, undefined, operation) as [Tensor, Tensor<"int64">];
  const [count] = found as unknown as [number];
  return { firsts: narrow(firsts, 0, 0, count), begins: narrow(begins, 0, 0, count) };
}
