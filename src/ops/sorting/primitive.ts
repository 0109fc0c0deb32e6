/**
 * The primitive `sort`: input x, outputs values and indices (int64). It returns the first elements in order; their
 * number is the outputs' size along the axis.
 */
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { dtype, flag, whole } from "../../backend/fields.ts";
import { slicesFor } from "../../backend/metal/slices.ts";
import { struct } from "../../backend/metal/struct.ts";

export interface SortAttributes {
  /** The axis to sort along. */
  readonly dim: number;
  readonly descending: boolean;
}

export const sortParameters = struct("Sort", "sorting/sort.metal", {
  slices: slicesFor(3),
  count: whole,
  run: whole,
  descending: flag,
});

export const sortCall = cpuCall("sort", { dtype, slices: slices(3), count: whole, descending: flag }, [
  ...["x", "values", "indices"],
]);
