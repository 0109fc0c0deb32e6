import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { sequencesOperand } from "./call.cpu.ts";
import { dropoutMaskCall, dropoutValues } from "./primitive.ts";
import type { DropoutMaskAttributes } from "./problem.ts";

export const dropoutMaskCpu: Implementation<DropoutMaskAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, outputs: [mask], attributes: { dropout, packed } }) {
    const [batch, heads, queries, keys] = mask.shape as [number, number, number, number];
    const values = {
      ...{ batch, heads, queries, keys, ...dropoutValues(dropout) },
      ...{ isPacked: packed !== undefined, sequences: packed?.length ?? 0, offset: mask.offset },
    };
    dropoutMaskCall(operation, values, [mask, sequencesOperand(packed)]);
  },
};
