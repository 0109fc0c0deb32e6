import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { reductionNests } from "./loop_nests.ts";
import { extremumNames, type ReductionAttributes, type ReductionName, reduceCall } from "./primitive.ts";

export function reduceCpu(name: ReductionName): Implementation<ReductionAttributes, [Tensor], [Tensor, Tensor]> {
  const isOrdered = (extremumNames as readonly string[]).includes(name);
  return {
    run({ operation, inputs: [input], outputs: [output, indices], attributes: { axes, parameter } }) {
      const { kept, reduced } = reductionNests(input, axes, isOrdered);
      const values = {
        operation: name,
        from: input.dtype,
        to: output.dtype,
        inputOffset: input.offset,
        outputOffset: output.offset,
        indicesOffset: indices?.offset ?? 0,
        parameter,
        kept,
        reduced,
      };
      reduceCall(operation, values, [input, output, indices]);
    },
  };
}
