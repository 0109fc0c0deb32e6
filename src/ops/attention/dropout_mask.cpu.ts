import type { Implementation } from "../../backend/backend.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { sequencesOperand } from "./call.cpu.ts";
import { dropoutMaskCall, dropoutValues } from "./primitive.ts";
import type { DropoutMaskAttributes } from "./problem.ts";

export const dropoutMaskCpu: Implementation<DropoutMaskAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, outputs: [mask], attributes: { dropout, packed } }) {
    const [batch, heads, queries, keys] = tupleOf(mask.shape, 4);
    const values = {
      batch,
      heads,
      queries,
      keys,
      ...dropoutValues(dropout),
      isPacked: packed !== undefined,
      sequences: packed?.length ?? 0,
      offset: mask.offset,
    };
    dropoutMaskCall(operation, values, [mask, sequencesOperand(packed)]);
  },
};
