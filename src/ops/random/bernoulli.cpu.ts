import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { collapse } from "../../tensor/shape.ts";
import type { RandomStart } from "./distribution.ts";

export const bernoulliCpu: Implementation<RandomStart> = {
  run({ operation, inputs: [p], outputs: [output], attributes: { key, counter } }) {
    const nest = collapse(output!.shape, [p!.strides]);
    const block = Float64Array.of(
      ...[output!.size, dtypeFacts[output!.dtype].code, output!.offset, ...key, ...counter],
      ...[dtypeFacts[p!.dtype].code, p!.offset, nest.shape.length, ...nest.shape, ...nest.strides[0]!],
    );
    const { native } = cpuLibrary();
    const status = native.orchard_cpu_bernoulli(block, p!.storage.hostBytes(), output!.storage.hostBytes());
    check(native, status, operation);
  },
};
