import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { splitWords } from "../../random/philox.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { type Distribution, type DistributionAttributes, distributionKinds } from "./distribution.ts";

const block = new Float64Array(14);

export const distributionCpu: Implementation<DistributionAttributes> = {
  run({ operation, outputs: [output], attributes: { key, counter, distribution } }) {
    const { dtype, offset, size, storage } = output!;
    const kind = distributionKinds.indexOf(distribution.kind);
    block.set([kind, size, dtypeFacts[dtype].code, offset, ...key, ...counter, ...parametersOf(distribution)]);
    const { native } = cpuLibrary();
    check(native, native.orchard_cpu_random(block, storage.hostBytes()), operation);
  },
};

function parametersOf(distribution: Distribution): number[] {
  switch (distribution.kind) {
    case "bits":
      return [];
    case "uniform":
      return [distribution.low, distribution.high - distribution.low, distribution.high];
    case "normal":
      return [distribution.mean, distribution.deviation];
    case "integers":
      return [distribution.least, distribution.choices].flatMap(splitWords);
  }
}
