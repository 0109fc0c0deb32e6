import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, startOf, writes } from "../../backend/metal/launch.ts";
import type { MultinomialAttributes } from "./multinomial.ts";

const SIMD_WIDTH = 32;
const MOST_THREADS = 256;

export const multinomialMetal: Implementation<MultinomialAttributes> = {
  unsupported: noFloat64,
  run({ inputs: [weights], outputs: [output], attributes: { key, counter, samples, replacement } }) {
    const [rows, categories] = weights!.shape as [number, number];
    const words = Uint32Array.of(...key, counter[3], categories, samples, replacement ? 1 : 0);
    const strides = BigInt64Array.from([...weights!.strides, startOf(weights!)], BigInt);
    const simdgroups = Math.ceil(Math.ceil(categories / 4) / SIMD_WIDTH);
    launch({
      file: "random/multinomial.metal",
      name: `multinomial_${metalTypeOf(weights!.dtype)}`,
      operands: [reads(weights!), writes(output!)],
      parameters: Buffer.concat([new Uint8Array(words.buffer), new Uint8Array(strides.buffer)]),
      threadgroups: [replacement ? samples : 1, rows],
      threadgroup: [Math.min(simdgroups * SIMD_WIDTH, MOST_THREADS)],
    });
  },
};
