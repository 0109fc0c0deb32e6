import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkRangeIfRecorded, errorWithRange } from "../indexing/range.cpu.ts";
import { classSlices, firstPlane } from "./class_slices.ts";
import { type CrossEntropyAttributes, crossEntropyCall, crossEntropyGradientCall } from "./primitive.ts";

export const crossEntropyCpu: Implementation<CrossEntropyAttributes, [Tensor, Tensor, ...Tensor[]]> = {
  run({ operation, inputs, outputs, attributes }) {
    const [logits, targets, factors, factorSum] = inputs;
    const range = { operation, index: targets, size: logits.shape[attributes.axis], except: attributes.ignoreIndex };
    checkRangeIfRecorded(range);
    const slices = classSlices([logits, targets, outputs[0]], attributes.axis);
    const values = { ...classValues([logits, targets], [factors, factorSum], attributes), slices };
    const status = crossEntropyCall.status(values, [logits, targets, factors, ...outputs]);
    if (status === 0) return;
    throw errorWithRange(crossEntropyCall.error(operation, status), range);
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

/** The fields that all calls share. */
export const classValues = (
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
