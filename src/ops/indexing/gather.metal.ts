import type { Implementation } from "../../backend/backend.ts";
import { launch, metalBitsOf, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { mergedLoop } from "../../backend/metal/loop.ts";
import type { GatherAttributes } from "./gather_primitive.ts";
import { checkRangeLater } from "./range.metal.ts";

export const gatherMetal: Implementation<GatherAttributes> = {
  unsupported: noFloat64,
  run({ inputs: [x, index], outputs: [output], attributes: { operation, dim, axes } }) {
    const size = x!.shape[dim]!;
    checkRangeLater({ operation, index: index!, size, axes });
    const { grid, threadgroup, parameters } = mergedLoop(
      output!.shape,
      [
        { tensor: x!, strides: x!.strides.with(dim, 0) },
        { tensor: index!, strides: index!.strides },
        { tensor: output!, strides: output!.strides },
      ],
      [size, x!.strides[dim]!],
    );
    launch({
      file: "indexing/gather.metal",
      name: `gather_${metalBitsOf(x!.dtype)}_${metalTypeOf(index!.dtype)}`,
      operands: [reads(x!), reads(index!), writes(output!)],
      parameters,
      grid,
      threadgroup,
    });
  },
};
