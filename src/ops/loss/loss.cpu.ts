import type { Implementation } from "../../backend/backend.ts";
import { lastElement } from "../../core/collections.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type LossAttributes, type LossGradientAttributes, lossCall, lossGradientCall } from "./primitive.ts";

export const lossCpu: Implementation<LossAttributes, [Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs, outputs: [output], attributes }) {
    const [x, target, weight = x, positiveWeight = x] = inputs;
    const operands = [x, target, weight, positiveWeight, output];
    lossCall(operation, { dtype: x.dtype, ...attributes, ...layoutOf(operands) }, operands);
  },
};

export const lossGradientCpu: Implementation<LossGradientAttributes, [Tensor, Tensor, Tensor, ...Tensor[]]> = {
  run({ operation, inputs, outputs, attributes }) {
    const [scale, x, target, weight = x, positiveWeight = x] = inputs;
    const [needsX, needsTarget] = attributes.needs;
    const gradient = needsX ? outputs[0] : x;
    const targetGradient = needsTarget ? lastElement(outputs) : x;
    const operands = [x, target, weight, positiveWeight, scale, gradient, targetGradient];
    lossGradientCall(operation, { dtype: x.dtype, ...attributes, ...layoutOf(operands) }, operands);
  },
};

/** Returns the operands' offsets and their loop nest over x's shape; a scalar operand gets strides of 0. */
function layoutOf(operands: readonly Tensor[]) {
  const { shape } = operands[0];
  const strides = operands.map((operand) => (operand.rank === 0 ? shape.map(() => 0) : operand.strides));
  return { offsets: operands.map(({ offset }) => offset), nest: collapse(shape, strides) };
}
