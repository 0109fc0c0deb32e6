import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalBitsOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { plainLoop } from "../../backend/metal/loop.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type TriangleAttributes, triangleParameters } from "./primitive.ts";

export const triangleMetal: MetalImplementation<TriangleAttributes, [Tensor], [Tensor]> = {
  unsupported: noFloat64,
  run({ inputs: [x], outputs: [output], attributes }) {
    const { grid, threadgroup, loop } = plainLoop(output.shape, [
      { tensor: x, strides: x.strides },
      { tensor: output, strides: output.strides },
    ]);
    return launch({
      file: "indexing/triangle.metal",
      name: `triangle_${metalBitsOf(x.dtype)}`,
      operands: [reads(x), writes(output)],
      parameters: triangleParameters.bytes({ loop, ...attributes }),
      grid,
      threadgroup,
    });
  },
};
