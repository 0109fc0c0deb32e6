import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { bytesOfAll, writeBlock } from "./block.cpu.ts";

export const squaresCpu: Implementation<undefined> = {
  run({ operation, inputs, outputs: [output] }) {
    const { native } = cpuLibrary();
    const block = writeBlock(inputs, output!.offset);
    check(
      native,
      native.orchard_cpu_gradient_squares(block, ...bytesOfAll(inputs), output!.storage.hostBytes()),
      operation,
    );
  },
};
