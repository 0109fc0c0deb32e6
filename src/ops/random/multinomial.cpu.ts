import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import type { MultinomialAttributes } from "./multinomial.ts";

export const multinomialCpu: Implementation<MultinomialAttributes> = {
  run({ operation, inputs: [weights], outputs: [output], attributes: { key, counter, samples, replacement } }) {
    const block = Float64Array.of(
      ...[...weights!.shape, samples, replacement ? 1 : 0, output!.offset, ...key, ...counter],
      ...[dtypeFacts[weights!.dtype].code, weights!.offset, ...weights!.strides],
    );
    const { native } = cpuLibrary();
    const status = native.orchard_cpu_multinomial(block, weights!.storage.hostBytes(), output!.storage.hostBytes());
    check(native, status, operation);
  },
};
