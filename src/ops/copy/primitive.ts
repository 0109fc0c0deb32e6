/** Copies, with a conversion where the dtypes differ. */
import { cpuCall, loop } from "../../backend/cpu/call.ts";
import { dtype } from "../../backend/fields.ts";

export const copyCall = cpuCall("copy", { from: dtype, to: dtype, loop: loop(2) }, ["x", "out"]);
