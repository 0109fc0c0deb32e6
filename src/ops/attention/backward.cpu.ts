import type { Implementation } from "../../backend/backend.ts";
import { callNative } from "./call.cpu.ts";
import { backwardCall, backwardOperands } from "./primitive.ts";
import type { AttentionAttributes } from "./problem.ts";

export const backwardCpu: Implementation<AttentionAttributes> = {
  run: (call) => callNative(backwardCall, call, backwardOperands),
};
