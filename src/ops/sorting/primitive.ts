/**
 * The primitive `sort`: input x, outputs values and indices (int64). It returns the first elements in order, as many as
 * the outputs' size along the axis.
 */
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { array, dtype, flag, whole } from "../../backend/fields.ts";
import { slicesFor } from "../../backend/metal/slices.ts";
import { struct } from "../../backend/metal/struct.ts";

export interface SortAttributes {
  /** The axis to sort along. */
  readonly dim: number;
  readonly descending: boolean;
}

export const sortParameters = struct("Sort", {
  slices: slicesFor(3),
  count: whole,
  run: whole,
  descending: flag,
});

export const sortCall = cpuCall("sort", { dtype, slices: slices(3), count: whole, descending: flag }, [
  "x",
  "values",
  "indices",
]);

/** Contiguous operands: sorted elements [lists, size], values and places [lists, count]. */
export const searchSortedCall = cpuCall(
  "searchSorted",
  { dtype, lists: whole, size: whole, count: whole, right: flag, offsets: array(whole, 3) },
  ["sorted", "values", "places"],
);

/** Elements of sorted slices. */
export type OrderStatistic = keyof typeof orderStatistics;
/** The numbers that identify the order statistics in native code. */
export const orderStatistics = { mode: 0, median: 1, nanmedian: 2 } as const;

/** Slices of sorted elements and of their indices. `places`, contiguous, has the index of one element of each slice. */
export const orderStatisticCall = cpuCall(
  "orderStatistic",
  { dtype, statistic: whole, slices: slices(2), offset: whole },
  ["sorted", "indices", "places"],
);

/** `firsts` and `begins` have the vector's length; `found` is the number of runs. */
export const runsCall = cpuCall("runs", { dtype, count: whole, stride: whole, offsets: array(whole, 3) }, [
  "x",
  "firsts",
  "begins",
  "found",
]);
