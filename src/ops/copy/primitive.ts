/** The primitive `copy`, which converts if the dtypes differ. */
import { cpuCall, loop } from "../../backend/cpu/call.ts";
import { dtype, whole } from "../../backend/fields.ts";

export const copyCall = cpuCall("copy", { from: dtype, to: dtype, loop: loop(2) }, ["x", "out"]);

/** Converts contiguous elements in memory that need not belong to a tensor. */
export const convertCall = cpuCall(
  "convert",
  { from: dtype, to: dtype, fromOffset: whole, toOffset: whole, count: whole },
  ["x", "out"],
);
