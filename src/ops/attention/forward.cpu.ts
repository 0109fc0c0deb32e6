import type { Implementation } from "../../backend/backend.ts";
import { callNative } from "./call.cpu.ts";
import { forwardCall, forwardOperands } from "./primitive.ts";
import type { AttentionAttributes } from "./problem.ts";

export const forwardCpu: Implementation<AttentionAttributes> = {
  run: (call) => callNative(forwardCall, call, forwardOperands),
};
