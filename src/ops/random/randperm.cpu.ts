import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import type { Permutation } from "../../random/permutation.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";

export const permutationCpu: Implementation<Permutation> = {
  run({ operation, outputs: [output], attributes: { leftBits, rightBits, swaps, keys } }) {
    const { dtype, offset, size, storage } = output!;
    const block = Float64Array.of(size, dtypeFacts[dtype].code, offset, leftBits, rightBits, Number(swaps), ...keys);
    const { native } = cpuLibrary();
    check(native, native.orchard_cpu_permutation(block, storage.hostBytes()), operation);
  },
};
