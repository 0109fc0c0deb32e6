import type { Implementation } from "../../backend/backend.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type LossAttributes, type LossGradientAttributes, lossCall, lossGradientCall } from "./primitive.ts";

export const lossCpu: Implementation<LossAttributes, [Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs, outputs: [output], attributes }) {
    const [x, target, third = x, fourth = x] = inputs;
    const operands = [x, target, third, fourth, output];
    lossCall(operation, { dtype: x.dtype, ...attributes, ...layoutOf(operands) }, operands);
  },
};

export const lossGradientCpu: Implementation<LossGradientAttributes, [Tensor, Tensor, Tensor, ...Tensor[]]> = {
  run({ operation, inputs, outputs, attributes }) {
    const [scale, x, target, third = x, fourth = x] = inputs;
    const operands = [x, target, third, fourth, scale, ...gradientsOf(attributes, outputs, x)];
    lossGradientCall(operation, { dtype: x.dtype, ...attributes, ...layoutOf(operands) }, operands);
  },
};

/** Returns a gradient for each of three operands: the results that are needed, in order, else a tensor not used. */
export function gradientsOf({ needs }: LossGradientAttributes, outputs: readonly Tensor[], unused: Tensor): Tensor[] {
  let next = 0;
  return needs.map((isNeeded) => (isNeeded ? outputs[next++] : unused));
}

/** Returns the operands' offsets and their loop nest over x's shape; a scalar operand gets strides of 0. */
function layoutOf(operands: readonly Tensor[]) {
  const { shape } = operands[0];
  const strides = operands.map((operand) => (operand.rank === 0 ? shape.map(() => 0) : operand.strides));
  return { offsets: operands.map(({ offset }) => offset), nest: collapse(shape, strides) };
}
