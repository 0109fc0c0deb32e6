import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { bytesOfAll, writeBlock } from "./block.cpu.ts";

export const scaleCpu: Implementation<undefined> = {
  run({ operation, inputs: [factor, ...gradients], outputs }) {
    const { native } = cpuLibrary();
    const block = writeBlock(gradients, factor!.offset, outputs);
    const factorBytes = factor!.storage.hostBytes();
    check(
      native,
      native.orchard_cpu_gradient_scale(block, factorBytes, ...bytesOfAll(gradients), ...bytesOfAll(outputs)),
      operation,
    );
  },
};
