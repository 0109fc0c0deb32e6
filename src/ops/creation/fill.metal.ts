import type { Implementation } from "../../backend/backend.ts";
import { launch, writes } from "../../backend/metal/launch.ts";
import { broadcastLoop } from "../../backend/metal/loop.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { elementBits } from "./element_bits.ts";
import type { FillAttributes } from "./fill.ts";

export const fillMetal: Implementation<FillAttributes> = {
  run({ outputs: [output], attributes: { value } }) {
    const { dtype } = output!;
    const { grid, threadgroup, parameters } = broadcastLoop(output!, []);
    const bits = new Uint8Array(Uint32Array.from(elementBits(dtype, value)).buffer);
    launch({
      file: "creation/fill.metal",
      name: `fill_${bytesOf(dtype)}`,
      operands: [writes(output!)],
      parameters: Buffer.concat([parameters, bits]),
      grid,
      threadgroup,
    });
  },
};
