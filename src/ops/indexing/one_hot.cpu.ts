import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { collapse } from "../../tensor/shape.ts";
import { blockOf } from "./block.cpu.ts";
import { checkRangeOnCpu } from "./range.cpu.ts";

export const oneHotCpu: Implementation<undefined> = {
  run({ operation, inputs: [index], outputs: [output] }) {
    const classes = output!.shape.at(-1)!;
    checkRangeOnCpu({ operation, index: index!, size: classes });
    const { native } = cpuLibrary();
    const nest = collapse(index!.shape, [index!.strides]);
    const block = blockOf([dtypeFacts[index!.dtype].code, index!.offset, output!.offset, classes], nest);
    check(
      native,
      native.orchard_cpu_one_hot(block, index!.storage.hostBytes(), output!.storage.hostBytes()),
      operation,
    );
  },
};
