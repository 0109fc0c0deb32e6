import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, writes } from "../../backend/metal/launch.ts";
import { bitsOf } from "../../random/float32.ts";
import { splitWords } from "../../random/philox.ts";
import { noFloat64Result } from "../creation/range.metal.ts";
import type { Distribution, DistributionAttributes } from "./distribution.ts";

const THREADS = 256;
/** The grid is rows of so many threads: a coordinate has 32 bits, a block's number may need more. */
const ROW = 2 ** 30;

export const distributionMetal: Implementation<DistributionAttributes> = {
  unsupported: noFloat64Result,
  run({ outputs: [output], attributes: { key, counter, distribution } }) {
    const blocks = Math.ceil(output!.size / 4);
    const words = new Uint32Array(12);
    words.set([...key, ...counter, ...splitWords(BigInt(output!.size)), ...parametersOf(distribution)]);
    launch({
      file: "random/distribution.metal",
      name: `${distribution.kind}_${metalTypeOf(output!.dtype)}`,
      operands: [writes(output!)],
      parameters: new Uint8Array(words.buffer),
      grid: [Math.min(blocks, ROW), Math.ceil(blocks / ROW)],
      threadgroup: [Math.min(blocks, THREADS)],
    });
  },
};

function parametersOf(distribution: Distribution): number[] {
  switch (distribution.kind) {
    case "bits":
      return [];
    case "uniform":
      return [distribution.low, distribution.high - distribution.low, distribution.high].map(bitsOf);
    case "normal":
      return [distribution.mean, distribution.deviation].map(bitsOf);
    case "integers":
      return [distribution.least, distribution.choices].flatMap(splitWords);
  }
}
