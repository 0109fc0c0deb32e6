/** The sum or the mean of cross entropies in one call of the cpu backend, without a gradient. */
import type { Implementation } from "../../backend/backend.ts";
import { execute } from "../../backend/dispatch.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import { elementCount, rowMajorStrides } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { checkRangeIfRecorded, errorWithRange } from "../indexing/range.cpu.ts";
import { classSlices } from "./class_slices.ts";
import { classValues } from "./cross_entropy.cpu.ts";
import type { CrossEntropyCall } from "./options.ts";
import { type CrossEntropyAttributes, crossEntropySumCall } from "./primitive.ts";

interface SumAttributes extends CrossEntropyAttributes {
  readonly isMean: boolean;
}

/** More losses are summed by operations that use all threads. */
const MOST_LOSSES = 1 << 12;

const sumCpu: Implementation<SumAttributes, [Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  run({ inputs, outputs: [result], attributes }) {
    const operation = "crossEntropy"; // the function that users call
    const [logits, targets, factors, factorSum] = inputs;
    const { axis, isMean, ignoreIndex } = attributes;
    const range = { operation, index: targets, size: logits.shape[axis], except: ignoreIndex };
    checkRangeIfRecorded(range);
    using losses = new Tensor(targets.storage, targets.dtype, targets.shape, rowMajorStrides(targets.shape), 0);
    const slices = classSlices([logits, targets, losses], axis);
    const values = { ...classValues([logits, targets], [factors, factorSum], attributes), isMean, slices };
    const status = crossEntropySumCall.status(values, [logits, targets, factors, result]);
    if (status !== 0) throw errorWithRange(crossEntropySumCall.error(operation, status), range);
  },
};

const sumPrimitive = definePrimitive<SumAttributes>({
  name: "crossEntropySum",
  family: "loss",
  implementations: { metal: onlyCpuFuses, cpu: sumCpu, reference: onlyCpuFuses },
});

/** Whether {@link summedCrossEntropy} applies. */
export const fusesSum = (logits: Tensor, targets: Tensor, { reduction, axis }: CrossEntropyCall): boolean =>
  reduction !== "none" &&
  elementCount(logits.shape.toSpliced(axis, 1)) <= MOST_LOSSES &&
  logits.size > 0 &&
  fusesOnCpu(logits, targets);

/** Computes the reduced loss in the accumulation dtype of the logits. @param factors the classes', and their sum */
export function summedCrossEntropy(
  logits: Tensor,
  targets: Tensor,
  factors: readonly Tensor[],
  { axis, ignoreIndex, labelSmoothing, reduction }: CrossEntropyCall,
): Tensor {
  const attributes = { axis, ignoreIndex, labelSmoothing, isMean: reduction === "mean" };
  const dtype = accumulationDType(logits.dtype);
  return execute(sumPrimitive, [logits, targets, ...factors], [], dtype, attributes, "crossEntropy");
}
