import type { Implementation } from "../../backend/backend.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import {
  type BatchNormAttributes,
  type BatchNormGradientName,
  type BatchNormGradientOperands,
  type BatchNormName,
  batchNormCall,
  batchNormGradientCall,
  operandsOf,
} from "./batch_norm_primitive.ts";
import { type Named, namedTensors } from "./problem.ts";

export const batchNormCpu: Implementation<BatchNormAttributes<BatchNormName>> = {
  run({ operation, inputs, outputs, attributes }) {
    const { x, weight, bias, mean, variance, out } = operandsOf(attributes, inputs, outputs);
    const operands = [x, weight, bias, mean, variance, out];
    const isGiven = attributes.inputs.includes("mean");
    const flags = { hasWeight: weight !== undefined, hasBias: bias !== undefined, isGiven };
    batchNormCall(operation, { ...blockOf(x, attributes.eps, operands), ...flags }, operands);
  },
};

export const batchNormGradientCpu: Implementation<BatchNormAttributes<BatchNormGradientName>> = {
  run({ operation, inputs, outputs, attributes }) {
    const { x, gradOut, weight, mean, variance } = namedTensors<BatchNormGradientOperands>(attributes.inputs, inputs);
    const { gradX, gradWeight, gradBias } = namedTensors<Named<BatchNormGradientName>>(attributes.outputs, outputs);
    const operands = [x, gradOut, weight, mean, variance, gradX, gradWeight, gradBias];
    const flags = {
      hasWeight: weight !== undefined,
      hasGradX: gradX !== undefined,
      hasGradWeight: gradWeight !== undefined,
      hasGradBias: gradBias !== undefined,
    };
    batchNormGradientCall(operation, { ...blockOf(x, attributes.eps, operands), ...flags }, operands);
  },
};

function blockOf({ dtype, shape }: Tensor, eps: number, operands: readonly (Tensor | undefined)[]) {
  const [batch, channels, inner] = tupleOf(shape, 3);
  return { dtype, batch, channels, inner, eps, offsets: operands.map((operand) => operand?.offset ?? 0) };
}
