import type { Implementation } from "../../backend/backend.ts";
import { launch, writes } from "../../backend/metal/launch.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { loopNest } from "../elementwise/loop.metal.ts";
import { elementBits } from "./element_bits.ts";
import type { FillAttributes } from "./fill.ts";

export const fillMetal: Implementation<FillAttributes> = {
  run({ outputs: [output], attributes: { value } }) {
    const { dtype } = output!;
    const { grid, threadgroup, parameters } = loopNest(output!, []);
    launch({
      file: "creation/fill.metal",
      name: `fill_${bytesOf(dtype)}`,
      constants: elementBits(dtype, value),
      operands: [writes(output!)],
      parameters,
      grid,
      threadgroup,
    });
  },
};
