import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type DistributionAttributes, drawOf, randomCall } from "./primitive.ts";

export const distributionCpu: Implementation<DistributionAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, outputs: [output], attributes }) {
    const { dtype, offset, size } = output;
    const { kind: distribution } = attributes.distribution;
    randomCall(operation, { ...drawOf(attributes, size), distribution, dtype, offset }, [output]);
  },
};
