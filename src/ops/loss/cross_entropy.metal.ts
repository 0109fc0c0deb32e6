import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { sliceValues } from "../../backend/metal/slices.ts";
import { lastElement } from "../../core/collections.ts";
import { type Slices, sliceCount } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkRangeLater } from "../indexing/range.metal.ts";
import { classSlices, firstPlane } from "./class_slices.ts";
import { type CrossEntropyAttributes, crossEntropyParameters } from "./primitive.ts";

const FILE = "loss/cross_entropy.metal";
const THREADS = 256;
/** Size of a state: the largest logit and three sums. */
const STATE_BYTES = 16;
/** Logits of a slice whose gradients one thread computes. */
const SEQUENCE = 16;
/** Slices of at least this length get a threadgroup each. */
const LONG = 512;

export const crossEntropyMetal: MetalImplementation<
  CrossEntropyAttributes,
  [Tensor, Tensor, ...Tensor[]],
  [Tensor, Tensor, Tensor]
> = {
  unsupported: noFloat64,
  run({ operation, inputs, outputs: [losses, used, logSums], attributes }) {
    const [logits, targets, factors = losses] = inputs;
    const size = logits.shape[attributes.axis];
    const checked = checkRangeLater({ operation, index: targets, size, except: attributes.ignoreIndex });
    const operands = [logits, targets, losses];
    const slices = classSlices(operands, attributes.axis);
    const { lanes, columns } = groupingOf(slices);
    const launched = launch({
      file: FILE,
      name: `cross_entropy_${metalTypeOf(logits.dtype)}_${metalTypeOf(targets.dtype)}`,
      constants: [variant(attributes, inputs.length > 2), columns, lanes],
      operands: [reads(logits), reads(targets), reads(factors), writes(losses), writes(used), writes(logSums)],
      parameters: parametersOf(operands, slices, attributes, slices.length),
      threadgroups: Math.ceil(sliceCount(slices) / columns),
      threadgroup: columns * lanes,
      threadgroupMemory: [columns * lanes * STATE_BYTES],
    });
    return spanOf([checked, launched]);
  },
};

export const crossEntropyGradientMetal: MetalImplementation<
  CrossEntropyAttributes,
  [Tensor, Tensor, Tensor, Tensor, ...Tensor[]],
  [Tensor]
> = {
  unsupported: noFloat64,
  run({ inputs, outputs: [gradient], attributes }) {
    const [logits, targets, logSums, scale, factors = logSums, factorSum = logSums] = inputs;
    using largest = firstPlane(logSums);
    const operands = [logits, targets, largest, scale, gradient];
    const slices = classSlices(operands, attributes.axis);
    const { lanes, columns } = groupingOf(slices);
    const chunk = lanes * SEQUENCE;
    return launch({
      file: FILE,
      name: `cross_entropy_gradient_${metalTypeOf(logits.dtype)}_${metalTypeOf(targets.dtype)}`,
      constants: [variant(attributes, inputs.length > 4), columns, lanes],
      operands: [...[logits, targets, factors, factorSum, logSums, scale].map(reads), writes(gradient)],
      parameters: parametersOf(operands, slices, attributes, chunk),
      threadgroups: [Math.ceil(sliceCount(slices) / columns), Math.ceil(slices.length / chunk)],
      threadgroup: columns * lanes,
    });
  },
};

/** Returns the bits `SMOOTHED` and `WEIGHTED`. */
const variant = ({ labelSmoothing }: CrossEntropyAttributes, isWeighted: boolean): number =>
  (labelSmoothing > 0 ? 1 : 0) + (isWeighted ? 2 : 0);

/**
 * Returns the threads that share a slice: many if its classes are contiguous, few if neighboring slices are adjacent in
 * memory.
 */
function groupingOf({ length, along, nest }: Slices): { lanes: number; columns: number } {
  const isSideBySide = Math.abs(along[0]) !== 1 && Math.abs(lastElement(nest.strides[0])) === 1;
  const lanes = isSideBySide ? (length <= 16 ? 1 : 8) : length < LONG ? 32 : THREADS;
  return { lanes, columns: THREADS / lanes };
}

const parametersOf = (
  operands: readonly Tensor[],
  slices: Slices,
  { ignoreIndex, labelSmoothing }: CrossEntropyAttributes,
  chunk: number,
): Uint8Array =>
  crossEntropyParameters.bytes({ slices: sliceValues(slices, operands), ignoreIndex, chunk, labelSmoothing });
