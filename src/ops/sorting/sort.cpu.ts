import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { collapse } from "../../tensor/shape.ts";
import { blockOf } from "../indexing/block.cpu.ts";
import type { SortAttributes } from "./sort_primitive.ts";

export const sortCpu: Implementation<SortAttributes> = {
  run({ operation, inputs: [x], outputs: [values, indices], attributes: { dim, descending } }) {
    const { native } = cpuLibrary();
    const operands = [x!, values!, indices!];
    const nest = collapse(
      x!.shape.with(dim, 1),
      operands.map(({ strides }) => strides),
    );
    const block = blockOf(
      [
        dtypeFacts[x!.dtype].code,
        ...operands.map(({ offset }) => offset),
        ...[x!.shape[dim]!, values!.shape[dim]!, descending ? 1 : 0],
        ...operands.map(({ strides }) => strides[dim]!),
      ],
      nest,
    );
    const [from, to, places] = operands.map(({ storage }) => storage.hostBytes());
    check(native, native.orchard_cpu_sort(block, from!, to!, places!), operation);
  },
};
