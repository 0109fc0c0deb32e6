import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dropoutNumbers, sequenceNumbers } from "./call.cpu.ts";
import type { DropoutMaskAttributes } from "./problem.ts";

/** `orchard_cpu_attention_dropout_mask`. */
export const dropoutMaskCpu: Implementation<DropoutMaskAttributes> = {
  run({ operation, outputs: [output], attributes: { dropout, packed } }) {
    const { shape, offset, storage } = output!;
    const block = Float64Array.of(...shape, ...dropoutNumbers(dropout), ...sequenceNumbers(packed), offset);
    const { native } = cpuLibrary();
    check(native, native.orchard_cpu_attention_dropout_mask(block, storage.hostBytes()), operation);
  },
};
