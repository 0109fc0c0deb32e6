import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { nativeCall } from "./call.cpu.ts";
import type { AttentionAttributes } from "./problem.ts";

const order = ["q", "k", "v", "mask", "bias", "sinks", "slopes", "out", "logSumExp"] as const;

/** `orchard_cpu_attention`. */
export const forwardCpu: Implementation<AttentionAttributes> = {
  run(call) {
    const { block, bytes } = nativeCall(call, order);
    const [q, k, v, mask, bias, sinks, slopes, out, logSumExp] = bytes;
    const { native } = cpuLibrary();
    const status = native.orchard_cpu_attention(block, q!, k!, v!, mask!, bias!, sinks!, slopes!, out!, logSumExp!);
    check(native, status, call.operation);
  },
};
