import type { Implementation } from "../../backend/backend.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { findDescentCall } from "../indexing/primitive.ts";
import { errorWithRange } from "../indexing/range.cpu.ts";
import { offsetsError } from "./offsets.ts";
import { type BagAttributes, bagCall, bagFactorsCall, bagGradientCall } from "./primitive.ts";

export const bagCpu: Implementation<BagAttributes> = {
  run({ operation, inputs, outputs, attributes }) {
    const [indices, offsets, factors, table] = tupleOf(inputs, 4);
    if (attributes.length === null) checkOffsets(offsets, indices.size);
    const head = headOf(attributes, indices, offsets, table);
    const starts = startsOf([indices, offsets, factors, table]);
    const status = bagCall.status({ ...head, starts, tableStrides: table.strides }, [...inputs, ...outputs]);
    if (status === 0) return;
    const error = bagCall.error(operation, status);
    throw errorWithRange(error, { operation, index: indices, size: attributes.rows });
  },
};

export const bagGradientCpu: Implementation<BagAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, inputs, outputs: [output], attributes }) {
    const [indices, offsets, factors, gradients, counts, best = counts] = inputs as BagGradientInputs;
    const head = headOf(attributes, indices, offsets, gradients);
    const operands = [indices, offsets, factors, gradients, counts, best];
    const starts = startsOf(operands);
    bagGradientCall(operation, { ...head, starts, gradientStrides: gradients.strides }, [...operands, output]);
  },
};

type BagGradientInputs = [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor?];

export const bagFactorsCpu: Implementation<BagAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, inputs, outputs: [output], attributes }) {
    const [indices, offsets, table, gradients] = tupleOf(inputs, 4);
    const head = headOf({ ...attributes, hasFactors: false }, indices, offsets, table);
    const strides = { tableStrides: table.strides, gradientStrides: gradients.strides };
    bagFactorsCall(operation, { ...head, starts: startsOf(inputs), ...strides }, [...inputs, output]);
  },
};

/** @param matrix the table or the gradients, whose second axis is the width of the bags */
const headOf = (
  { length, ...attributes }: BagAttributes,
  { dtype: indexDtype, size: total }: Tensor,
  { dtype: offsetDtype }: Tensor,
  { dtype, shape }: Tensor,
) => ({ ...attributes, length: length ?? -1, dtype, indexDtype, offsetDtype, total, width: shape[1] });

const startsOf = (operands: readonly Tensor[]): number[] => operands.map(({ offset }) => offset);

const found = new Float64Array(1);

/** @throws {ShapeError} for the first invalid offset. */
function checkOffsets(offsets: Tensor, size: number): void {
  const { dtype, offset, size: count, storage } = offsets;
  findDescentCall("embeddingBag", { dtype, offset, count, size }, [offsets, found]);
  const position = found[0];
  if (position >= 0) throw offsetsError(position, storage.array(dtype)[offset + position], size);
}
