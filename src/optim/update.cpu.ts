import type { Implementation } from "../backend/backend.ts";
import { cpuLibrary } from "../backend/cpu/loader.ts";
import { check } from "../backend/cpu/status.ts";
import { dtypeFacts } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { MOST_PARAMETERS } from "./batch.ts";
import { coefficientNames, ruleNames } from "./rules.ts";
import { operandsOf, type UpdateAttributes } from "./update.ts";

type Nine<T> = [T, T, T, T, T, T, T, T, T];

const HEAD = 8;
const EACH = 5 + coefficientNames.length;
const block = new Float64Array(HEAD + MOST_PARAMETERS * EACH);
const blockBytes = new Uint8Array(block.buffer);

/** The storages of up to nine tensors. */
const nine = (tensors: readonly Tensor[]): Nine<Uint8Array> =>
  Array.from(
    { length: MOST_PARAMETERS },
    (_, index) => tensors[index]?.storage.hostBytes() ?? blockBytes,
  ) as Nine<Uint8Array>;

export const updateCpu: Implementation<UpdateAttributes> = {
  run({ operation, inputs, outputs, attributes }) {
    const { stateBefore, stateAfter, before, gradients, after } = operandsOf(inputs, outputs, attributes);
    const bytes = (tensor: Tensor | undefined) => tensor?.storage.hostBytes() ?? blockBytes;
    const { rule, hasMaster, plane, members } = attributes;
    const head = [
      ...[
        ruleNames.indexOf(rule),
        hasMaster ? 1 : 0,
        dtypeFacts[before[0]!.dtype].code,
        dtypeFacts[gradients[0]!.dtype].code,
      ],
      ...[plane, stateBefore?.offset ?? 0, stateAfter?.offset ?? 0, members.length],
    ];
    const numbers = members.flatMap(({ start, coefficients }, index) => [
      ...[before[index]!.size, start, before[index]!.offset, gradients[index]!.offset, after[index]!.offset],
      ...coefficientNames.map((name) => coefficients[name]),
    ]);
    block.set(head);
    block.set(numbers, HEAD);
    const { native } = cpuLibrary();
    const operands = [...nine(before), ...nine(gradients), ...nine(after)] as [
      ...Nine<Uint8Array>,
      ...Nine<Uint8Array>,
      ...Nine<Uint8Array>,
    ];
    check(native, native.orchard_cpu_update(block, bytes(stateBefore), bytes(stateAfter), ...operands), operation);
  },
};
