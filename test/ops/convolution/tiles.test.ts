/**
 * Convolutions on cpu that are larger than a tile or a block of their depth, of few rows, and with strides that leave
 * elements out: the result and both gradients against the sums that define them, in float64.
 */
import { test } from "bun:test";
import { type Case, checkCase } from "./cases.ts";

const cases: Readonly<Record<string, Case>> = {
  "a part of the channels and some lines": {
    ...({ x: [1, 240, 3, 30], weight: [30, 240, 3, 3] } as const),
    ...{ stride: 1, padding: 1, groups: 1 },
  },
  "a part of a line": { x: [1, 3, 2, 1300], weight: [5, 3, 1, 7], stride: 1, padding: 3, groups: 1 },
  "strides over several stretches": { x: [2, 6, 61, 67], weight: [30, 3, 7, 7], stride: 2, padding: 3, groups: 2 },
  "a part of the outputs": { x: [1, 2, 5, 6], weight: [61, 2, 3, 3], stride: 1, padding: 1, groups: 1 },
  "one channel a group": { x: [2, 3, 67, 63], weight: [6, 1, 3, 3], stride: 1, padding: 1, groups: 3 },
  "one channel a group, with strides": { x: [1, 4, 19, 23], weight: [4, 1, 5, 3], stride: 3, padding: 2, groups: 4 },
  "one channel a group, small pictures": { x: [3, 5, 7, 9], weight: [10, 1, 3, 3], stride: 2, padding: 1, groups: 5 },
  "several small pictures side by side": { x: [9, 20, 5, 7], weight: [17, 20, 3, 3], stride: 1, padding: 1, groups: 1 },
  "a stride beyond the kernel": { x: [2, 6, 9, 11], weight: [15, 6, 1, 2], stride: 3, padding: 0, groups: 1 },
  "a stride beyond the kernel along one axis": {
    ...({ x: [2, 6, 60, 83], weight: [15, 6, 3, 2] } as const),
    ...{ stride: 3, padding: 0, groups: 1 },
  },
  "a kernel of one element": { x: [3, 9, 6, 13], weight: [21, 9, 1, 1], stride: 1, padding: 0, groups: 1 },
  "few outputs of many channels": { x: [2, 40, 11, 21], weight: [3, 40, 3, 3], stride: 2, padding: 1, groups: 1 },
  "few channels of many outputs": { x: [2, 3, 18, 17], weight: [33, 3, 5, 5], stride: 2, padding: 2, groups: 1 },
  "more places than a block": { x: [1, 2, 24, 30], weight: [5, 2, 21, 21], stride: 1, padding: 10, groups: 1 },
  "a column": { x: [2, 7, 45, 1], weight: [19, 7, 4, 1], stride: 1, padding: 0, groups: 1 },
  dilation: { x: [1, 9, 17, 19], weight: [8, 9, 3, 3], stride: 2, padding: 4, groups: 1, dilation: 3 },
};

test.each(Object.entries(cases))("%s", (_, own) => {
  for (const dtype of ["float32", "float64"] as const) checkCase("cpu", own, dtype);
});
