/** Max unpooling as one call of the cpu backend, without a gradient. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { array, dtype, whole } from "../../backend/fields.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { elementCount, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";
import { indexRefusal } from "../indexing/wrapped_range.cpu.ts";
import { reshape } from "../view/reshape.ts";

interface UnpoolAttributes {
  readonly planes: number;
  readonly pixels: number;
}

const unpoolCall = cpuCall(
  "maxUnpool",
  { dtype, indexDtype: dtype, planes: whole, elements: whole, pixels: whole, offsets: array(whole, 3) },
  ["x", "indices", "result"],
);

const unpoolCpu: Implementation<UnpoolAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [x, indices], outputs: [result], attributes }) {
    const { planes, pixels } = attributes;
    const operands = [x, indices, result];
    const elements = x.size / planes;
    const offsets = operands.map(({ offset }) => offset);
    const block = { dtype: x.dtype, indexDtype: indices.dtype, planes, elements, pixels, offsets };
    const status = unpoolCall.status(block, operands);
    if (status === 0) return;
    const rows = reshape(indices, [planes, elements]);
    throw indexRefusal(unpoolCall.error(operation, status), rows, pixels, { operation, dim: 1 });
  },
};

const unpoolPrimitive = definePrimitive<UnpoolAttributes>({
  name: "maxUnpool",
  family: "pooling",
  implementations: { metal: onlyCpuFuses, cpu: unpoolCpu, reference: onlyCpuFuses },
});

/** Whether {@link unpooled} applies. */
export const fusesUnpool = (x: Tensor, indices: Tensor): boolean => fusesOnCpu(x, indices) && x.size > 0;

/** Puts each element of planes […, …] at the position in a plane of `rank` axes that its index names. */
export function unpooled(operation: string, x: Tensor, indices: Tensor, shape: Shape, rank: number): Tensor {
  const [planes, pixels] = [shape.slice(0, -rank), shape.slice(-rank)].map(elementCount) as [number, number];
  const inputs = [contiguous(x), contiguous(indices)];
  return execute(unpoolPrimitive, inputs, shape, x.dtype, { planes, pixels }, operation);
}
