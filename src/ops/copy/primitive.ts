/** Copies, with a conversion where the dtypes differ. */
import { cpuCall, loop } from "../../backend/cpu/call.ts";
import { dtype, whole } from "../../backend/fields.ts";

export const copyCall = cpuCall("copy", { from: dtype, to: dtype, loop: loop(2) }, ["x", "out"]);

/** The same of adjacent elements in memory that may belong to no tensor. */
export const convertCall = cpuCall(
  "convert",
  { from: dtype, to: dtype, fromOffset: whole, toOffset: whole, count: whole },
  ["x", "out"],
);
