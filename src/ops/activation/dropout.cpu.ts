import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { block, writeLoop } from "../elementwise/loop.cpu.ts";
import type { DropoutAttributes } from "./dropout.ts";

export const dropoutCpu: Implementation<DropoutAttributes> = {
  run({ operation, inputs, outputs: [output], attributes: { key, counter, lastDropped, scale } }) {
    const [x] = inputs;
    const head = [dtypeFacts[x!.dtype].code, ...key, ...counter, lastDropped, scale];
    block.set(head);
    writeLoop(head.length, output!, inputs);
    const { native } = cpuLibrary();
    check(native, native.orchard_cpu_dropout(block, x!.storage.hostBytes(), output!.storage.hostBytes()), operation);
  },
};
