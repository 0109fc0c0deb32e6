import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { collapse } from "../../tensor/shape.ts";
import { blockOf } from "./block.cpu.ts";
import { checkRangeOnCpu } from "./range.cpu.ts";
import type { ScatterAttributes } from "./scatter_add_primitive.ts";

export const scatterAddCpu: Implementation<ScatterAttributes> = {
  run({ inputs, outputs: [output], attributes: { operation, dim, axes } }) {
    const [x, index, source] = inputs;
    checkRangeOnCpu({ operation, index: index!, size: x!.shape[dim]!, axes });
    const { native } = cpuLibrary();
    const operands = [x!, index!, source!, output!];
    const nest = collapse(
      x!.shape.with(dim, 1),
      operands.map(({ strides }) => strides),
    );
    const block = blockOf(
      [
        ...[dtypeFacts[x!.dtype].code, dtypeFacts[index!.dtype].code],
        ...operands.map(({ offset }) => offset),
        ...[source!.shape[dim]!, x!.shape[dim]!],
        ...operands.map(({ strides }) => strides[dim]!),
      ],
      nest,
    );
    const [from, at, added, to] = operands.map(({ storage }) => storage.hostBytes());
    check(native, native.orchard_cpu_scatter_add(block, from!, at!, added!, to!), operation);
  },
};
