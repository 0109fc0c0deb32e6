import type { Implementation } from "../../backend/backend.ts";
import { launch, metalBitsOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { plainLoop } from "../../backend/metal/loop.ts";
import type { TriangleAttributes } from "./triangle_attributes.ts";

export const triangleMetal: Implementation<TriangleAttributes> = {
  unsupported: noFloat64,
  run({ inputs: [x], outputs: [output], attributes: { lower, diagonal } }) {
    const { grid, threadgroup, parameters } = plainLoop(
      output!.shape,
      [
        { tensor: x!, strides: x!.strides },
        { tensor: output!, strides: output!.strides },
      ],
      [diagonal, lower ? 1 : 0],
    );
    launch({
      file: "indexing/triangle.metal",
      name: `triangle_${metalBitsOf(x!.dtype)}`,
      operands: [reads(x!), writes(output!)],
      parameters,
      grid,
      threadgroup,
    });
  },
};
