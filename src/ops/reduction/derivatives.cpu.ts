import type { Implementation } from "../../backend/backend.ts";
import { broadcastStrides, collapse, elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type DerivativeAttributes, derivativeCall, type SelectAttributes, selectCall } from "./primitive.ts";

export const derivativeCpu: Implementation<DerivativeAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [x, y], outputs: [output], attributes: { name, parameter } }) {
    const operands = [x, y, output] as const;
    derivativeCall(operation, { operation: name, parameter, ...pairValues(operands) }, operands);
  },
};

export const selectCpu: Implementation<SelectAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [x, indices], outputs: [output], attributes: { axis } }) {
    const operands = [x, indices, output] as const;
    const { shape } = output;
    const axisFields = { size: shape[axis] ?? 1, inner: elementCount(shape.slice(axis + 1)) };
    selectCall(operation, { ...axisFields, ...pairValues(operands) }, operands);
  },
};

function pairValues(operands: readonly [x: Tensor, y: Tensor, output: Tensor]) {
  const [x, y, { dtype, shape }] = operands;
  const strides = [x, y].map((operand) => broadcastStrides(operand.shape, operand.strides, shape));
  return { dtype, offsets: operands.map(({ offset }) => offset), nest: collapse(shape, strides) };
}
