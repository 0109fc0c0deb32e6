import type { Implementation } from "../../backend/backend.ts";
import { launch, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { bitsType, plainNest } from "./nest.metal.ts";
import type { TriangleAttributes } from "./triangle_attributes.ts";

export const triangleMetal: Implementation<TriangleAttributes> = {
  unsupported: noFloat64,
  run({ inputs: [x], outputs: [output], attributes: { lower, diagonal } }) {
    const { grid, threadgroup, parameters } = plainNest(
      output!.shape,
      [
        { tensor: x!, strides: x!.strides },
        { tensor: output!, strides: output!.strides },
      ],
      [diagonal, lower ? 1 : 0],
    );
    launch({
      file: "indexing/triangle.metal",
      name: `triangle_${bitsType[bytesOf(x!.dtype)]}`,
      operands: [reads(x!), writes(output!)],
      parameters,
      grid,
      threadgroup,
    });
  },
};
