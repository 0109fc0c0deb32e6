import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { mergedLoop } from "../../backend/metal/loop.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { oneHotParameters } from "./primitive.ts";
import { checkRangeLater } from "./range.metal.ts";

export const oneHotMetal: MetalImplementation<undefined, [Tensor], [Tensor]> = {
  run({ operation, inputs: [index], outputs: [output] }) {
    const classes = lastElement(output.shape);
    const check = checkRangeLater({ operation, index: index, size: classes });
    const { grid, threadgroup, loop } = mergedLoop(output.shape, [
      { tensor: index, strides: [...index.strides, 0] },
      { tensor: output, strides: output.strides },
    ]);
    const encoded = launch({
      file: "indexing/one_hot.metal",
      name: `one_hot_${metalTypeOf(index.dtype)}`,
      operands: [reads(index), writes(output)],
      parameters: oneHotParameters.bytes({ loop, classes }),
      grid,
      threadgroup,
    });
    return spanOf([check, encoded]);
  },
};
