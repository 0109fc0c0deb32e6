import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { collapse } from "../../tensor/shape.ts";
import { blockOf } from "./block.cpu.ts";
import type { GatherAttributes } from "./gather_primitive.ts";
import { checkRangeOnCpu } from "./range.cpu.ts";

export const gatherCpu: Implementation<GatherAttributes> = {
  run({ inputs: [x, index], outputs: [output], attributes: { operation, dim, axes } }) {
    checkRangeOnCpu({ operation, index: index!, size: x!.shape[dim]!, axes });
    const { native } = cpuLibrary();
    const nest = collapse(output!.shape, [x!.strides.with(dim, 0), index!.strides, output!.strides]);
    const codes = [dtypeFacts[x!.dtype].code, dtypeFacts[index!.dtype].code];
    const block = blockOf([...codes, x!.offset, index!.offset, output!.offset, x!.strides[dim]!], nest);
    const [from, at, to] = [x!, index!, output!].map(({ storage }) => storage.hostBytes());
    check(native, native.orchard_cpu_gather(block, from!, at!, to!), operation);
  },
};
