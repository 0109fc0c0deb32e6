import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { block, writeLoop } from "../elementwise/loop.cpu.ts";

/** Both results have one layout: the loop has it once. */
export const swigluGradientCpu: Implementation<undefined> = {
  run({ operation, inputs, outputs: [gateGradient, upGradient] }) {
    block[0] = dtypeFacts[gateGradient!.dtype].code;
    writeLoop(1, gateGradient!, inputs);
    const { native } = cpuLibrary();
    const [g, gate, up] = inputs.map(({ storage }) => storage.hostBytes());
    const results = [gateGradient!.storage.hostBytes(), upGradient!.storage.hostBytes()] as const;
    check(native, native.orchard_cpu_swiglu_gradient(block, g!, gate!, up!, ...results), operation);
  },
};
