import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { broadcastLoop } from "../../backend/metal/loop.ts";
import type { RandomStart } from "./distribution.ts";

export const bernoulliMetal: Implementation<RandomStart> = {
  unsupported: noFloat64,
  run({ inputs: [p], outputs: [output], attributes: { key, counter } }) {
    const { grid, threadgroup, parameters } = broadcastLoop(output!, [p!]);
    const start = new Uint8Array(Uint32Array.of(...key, ...counter).buffer);
    launch({
      file: "random/bernoulli.metal",
      name: `bernoulli_${metalTypeOf(p!.dtype)}_${metalTypeOf(output!.dtype)}`,
      operands: [reads(p!), writes(output!)],
      parameters: Buffer.concat([parameters, start]),
      grid,
      threadgroup,
    });
  },
};
