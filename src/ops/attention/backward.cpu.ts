import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { nativeCall } from "./call.cpu.ts";
import type { AttentionAttributes } from "./problem.ts";

const order = [
  ...(["q", "k", "v", "mask", "bias", "sinks", "slopes", "out", "logSumExp", "gradOut", "gradLogSumExp"] as const),
  ...(["gradQ", "gradK", "gradV", "gradBias", "gradSinks"] as const),
];

/** `orchard_cpu_attention_backward`. */
export const backwardCpu: Implementation<AttentionAttributes> = {
  run(call) {
    const { block, bytes } = nativeCall(call, order);
    const [q, k, v, mask, bias, sinks, slopes, out, logSumExp, gradOut, gradLogSumExp, ...gradients] = bytes;
    const [gradQ, gradK, gradV, gradBias, gradSinks] = gradients;
    const { native } = cpuLibrary();
    const status = native.orchard_cpu_attention_backward(
      ...([block, q!, k!, v!, mask!, bias!, sinks!, slopes!, out!, logSumExp!, gradOut!, gradLogSumExp!] as const),
      ...([gradQ!, gradK!, gradV!, gradBias!, gradSinks!] as const),
    );
    check(native, status, call.operation);
  },
};
