import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalBitsOf, metalTypeOf, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { mergedLoop } from "../../backend/metal/loop.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { gatherParameters, type IndexAttributes } from "./primitive.ts";
import { checkRangeLater } from "./range.metal.ts";

export const gatherMetal: MetalImplementation<IndexAttributes, [Tensor, Tensor], [Tensor]> = {
  unsupported: noFloat64,
  run({ inputs: [x, index], outputs: [output], attributes: { operation, dim, ...caller } }) {
    const size = x.shape[dim];
    const check = checkRangeLater({ operation, index: index, size, ...caller });
    const { grid, threadgroup, loop } = mergedLoop(output.shape, [
      { tensor: x, strides: x.strides.with(dim, 0) },
      { tensor: index, strides: index.strides },
      { tensor: output, strides: output.strides },
    ]);
    const gathered = launch({
      file: "indexing/gather.metal",
      name: `gather_${metalBitsOf(x.dtype)}_${metalTypeOf(index.dtype)}`,
      operands: [reads(x), reads(index), writes(output)],
      parameters: gatherParameters.bytes({ loop, size, stride: x.strides[dim] }),
      grid,
      threadgroup,
    });
    return spanOf([check, gathered]);
  },
};
