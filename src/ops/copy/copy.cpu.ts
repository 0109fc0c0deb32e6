import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { block, writeLoop } from "../elementwise/loop.cpu.ts";

export const copyCpu: Implementation<undefined> = {
  run({ operation, inputs, outputs: [output] }) {
    const [input] = inputs;
    block[0] = dtypeFacts[input!.dtype].code;
    block[1] = dtypeFacts[output!.dtype].code;
    writeLoop(2, output!, inputs);
    const { native } = cpuLibrary();
    check(native, native.orchard_cpu_copy(block, input!.storage.hostBytes(), output!.storage.hostBytes()), operation);
  },
};
