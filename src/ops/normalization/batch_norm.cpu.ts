import type { Implementation } from "../../backend/backend.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import {
  type BatchNormAttributes,
  type BatchNormGradientName,
  type BatchNormName,
  batchNormCall,
  batchNormGradientCall,
} from "./batch_norm_primitive.ts";
import { namedTensors } from "./problem.ts";

export const batchNormCpu: Implementation<BatchNormAttributes<BatchNormName>> = {
  run({ operation, inputs, outputs, attributes }) {
    const given = namedTensors(attributes.inputs, inputs);
    const { weight, bias, mean, variance, out } = { ...given, ...namedTensors(attributes.outputs, outputs) };
    const operands = [given.x, weight, bias, mean, variance, out];
    const flags = { hasWeight: weight !== undefined, hasBias: bias !== undefined, isGiven: given.mean !== undefined };
    batchNormCall(operation, { ...blockOf(given.x!, attributes.eps, operands), ...flags }, operands);
  },
};

export const batchNormGradientCpu: Implementation<BatchNormAttributes<BatchNormGradientName>> = {
  run({ operation, inputs, outputs, attributes }) {
    const { x, gradOut, weight, mean, variance } = namedTensors(attributes.inputs, inputs);
    const { gradX, gradWeight, gradBias } = namedTensors(attributes.outputs, outputs);
    const operands = [x, gradOut, weight, mean, variance, gradX, gradWeight, gradBias];
    const flags = {
      ...{ hasWeight: weight !== undefined, hasGradX: gradX !== undefined },
      ...{ hasGradWeight: gradWeight !== undefined, hasGradBias: gradBias !== undefined },
    };
    batchNormGradientCall(operation, { ...blockOf(x!, attributes.eps, operands), ...flags }, operands);
  },
};

function blockOf({ dtype, shape }: Tensor, eps: number, operands: readonly (Tensor | undefined)[]) {
  const [batch, channels, inner] = tupleOf(shape, 3);
  return { ...{ dtype, batch, channels, inner, eps }, offsets: operands.map((operand) => operand?.offset ?? 0) };
}
