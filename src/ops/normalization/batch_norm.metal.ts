/** Batch normalization on metal: one threadgroup for each channel, forward and backward. */
import type { MetalImplementation, OperationCall } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import {
  type BatchNormAttributes,
  type BatchNormGradientName,
  type BatchNormGradientOperands,
  type BatchNormName,
  batchNormOptions,
  batchNormParameters,
  operandsOf,
} from "./batch_norm_primitive.ts";
import { type Named, namedTensors } from "./problem.ts";

const FILE = "normalization/batch_norm.metal";
/** The most threads in a threadgroup, and those in a SIMD-group. */
const [MOST_THREADS, LANES] = [512, 32];
/** Bound on the elements of a channel, which kernels count in 32 bits. */
const MOST = 2 ** 31;

/** Absent operands are bound to another operand of the same dtype, which the kernel does not access in their place. */
export const batchNormMetal: MetalImplementation<BatchNormAttributes<BatchNormName>> = {
  unsupported,
  run({ inputs, outputs, attributes }) {
    const { x, weight, bias, mean, variance, out } = operandsOf(attributes, inputs, outputs);
    const isGiven = attributes.inputs.includes("mean");
    const present = { weight, bias, given: isGiven };
    return launch({
      ...kernelOf("batch_norm", x, present),
      operands: [
        ...[x, weight ?? mean, bias ?? mean].map(reads),
        ...[mean, variance].map(isGiven ? reads : writes),
        writes(out),
      ],
      parameters: parametersOf(x, attributes.eps),
    });
  },
};

export const batchNormGradientMetal: MetalImplementation<BatchNormAttributes<BatchNormGradientName>> = {
  unsupported,
  run({ inputs, outputs, attributes }) {
    const { x, gradOut, mean, variance, weight } = namedTensors<BatchNormGradientOperands>(attributes.inputs, inputs);
    const { gradX, gradWeight, gradBias } = namedTensors<Named<BatchNormGradientName>>(attributes.outputs, outputs);
    const any = outputs[0];
    return launch({
      ...kernelOf("batch_norm_gradient", x, { weight, gradX, gradWeight, gradBias }),
      operands: [
        ...[x, gradOut, weight ?? mean, mean, variance].map(reads),
        ...[gradX ?? any, gradWeight ?? any, gradBias ?? any].map(writes),
      ],
      parameters: parametersOf(x, attributes.eps),
    });
  },
};

function unsupported(call: Pick<OperationCall<unknown>, "inputs">): string | undefined {
  const [batch, , inner] = tupleOf(call.inputs[0].shape, 3);
  return batch * inner >= MOST ? `a channel has ${MOST} elements or more` : noFloat64(call);
}

type Option = (typeof batchNormOptions)["names"][number];

function kernelOf(name: string, x: Tensor, present: { readonly [Name in Option]?: unknown }) {
  const [batch, channels, inner] = tupleOf(x.shape, 3);
  const { names, ordinal } = batchNormOptions;
  const bits = names.reduce((sum, each) => sum + (present[each] ? 2 ** ordinal(each) : 0), 0);
  const wanted = LANES * 2 ** Math.ceil(Math.log2(Math.max(1, (batch * inner) / LANES)));
  const threads = Math.min(wanted, MOST_THREADS);
  return {
    file: FILE,
    name: `${name}_${metalTypeOf(x.dtype)}`,
    constants: [bits, threads],
    threadgroups: channels,
    threadgroup: threads,
  };
}

function parametersOf({ shape }: Tensor, eps: number): Uint8Array {
  const [batch, channels, inner] = tupleOf(shape, 3);
  return batchNormParameters.bytes({ batch, channels, inner, eps });
}
