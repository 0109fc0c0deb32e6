import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkRangeOnCpu } from "../indexing/range.cpu.ts";
import { classSlices, firstPlane } from "./class_slices.ts";
import { type CrossEntropyAttributes, crossEntropyCall, crossEntropyGradientCall } from "./primitive.ts";

export const crossEntropyCpu: Implementation<CrossEntropyAttributes, [Tensor, Tensor, ...Tensor[]]> = {
  run({ operation, inputs, outputs, attributes }) {
    const [logits, targets, factors, factorSum] = inputs;
    const size = logits.shape[attributes.axis];
    checkRangeOnCpu({ operation, index: targets, size, except: attributes.ignoreIndex });
    const slices = classSlices([logits, targets, outputs[0]], attributes.axis);
    const values = { ...classValues([logits, targets], [factors, factorSum], attributes), slices };
    crossEntropyCall(operation, values, [logits, targets, factors, ...outputs]);
  },
};

export const crossEntropyGradientCpu: Implementation<
  CrossEntropyAttributes,
  [Tensor, Tensor, Tensor, Tensor, ...Tensor[]],
  [Tensor]
> = {
  run({ operation, inputs, outputs: [gradient], attributes }) {
    const [logits, targets, logSums, scale, factors, factorSum] = inputs;
    using largest = firstPlane(logSums);
    const slices = classSlices([logits, targets, largest, scale, gradient], attributes.axis);
    const values = { ...classValues([logits, targets], [factors, factorSum], attributes), slices };
    crossEntropyGradientCall(operation, values, [logits, targets, factors, logSums, scale, gradient]);
  },
};

const classValues = (
  [logits, targets]: readonly [Tensor, Tensor],
  [factors, factorSum]: readonly [Tensor | undefined, Tensor | undefined],
  { axis, ignoreIndex, labelSmoothing }: CrossEntropyAttributes,
) => ({
  dtype: logits.dtype,
  indexDType: targets.dtype,
  ignoreIndex,
  labelSmoothing,
  hasFactors: factors !== undefined,
  factorsOffset: factors?.offset ?? 0,
  factorSum: factorSum ? numberIn(factorSum) : logits.shape[axis],
});

const numberIn = ({ storage, dtype, offset }: Tensor): number => Number(storage.array(dtype)[offset]);
