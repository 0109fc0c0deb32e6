import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import type { PermutationAttributes } from "./randperm.ts";

export const permutationCpu: Implementation<PermutationAttributes> = {
  run({ operation, outputs: [output], attributes: { leftBits, rightBits, swaps, keys } }) {
    const { dtype, offset, size, storage } = output!;
    const block = Float64Array.of(size, dtypeFacts[dtype].code, offset, leftBits, rightBits, Number(swaps), ...keys);
    const { native } = cpuLibrary();
    check(native, native.orchard_cpu_permutation(block, storage.hostBytes()), operation);
  },
};
