/** Fractional max pooling as one call of the cpu backend. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { array, dtype, whole } from "../../backend/fields.ts";
import { hasOnlyCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";

interface FractionalAttributes {
  readonly output: readonly number[];
  readonly kernel: readonly number[];
}

const two = array(whole, 2);
const poolCall = cpuCall(
  "fractionalMaxPool",
  { dtype, planes: whole, input: two, output: two, kernel: two, offsets: array(whole, 4) },
  ["x", "samples", "values", "indices"],
);

const poolCpu: Implementation<FractionalAttributes, [Tensor, Tensor], [Tensor, Tensor]> = {
  run({ operation, inputs: [x, samples], outputs: [values, indices], attributes }) {
    const operands = [x, samples, values, indices];
    const input = x.shape.slice(-2);
    const planes = x.size / (input[0] * input[1]);
    const offsets = operands.map(({ offset }) => offset);
    poolCall(operation, { ...attributes, dtype: x.dtype, planes, input, offsets }, operands);
  },
};

const poolPrimitive = definePrimitive<FractionalAttributes>({
  name: "fractionalMaxPool",
  family: "pooling",
  implementations: { metal: onlyCpuFuses, cpu: poolCpu, reference: onlyCpuFuses },
});

/** Whether {@link fractionalMaxima} applies. */
export const fusesFractional = (x: Tensor, samples: Tensor): boolean =>
  hasOnlyCpu(x, samples) && isFloat(x.dtype) && x.size > 0;

/** Returns the largest elements of all windows and their indices in the planes, which are not recorded. */
export function fractionalMaxima(
  operation: string,
  x: Tensor,
  samples: Tensor,
  attributes: FractionalAttributes,
): [values: Tensor, indices: Tensor<"int64">] {
  const shape = [...x.shape.slice(0, -2), ...attributes.output];
  const specs = [
    { shape, dtype: x.dtype },
    { shape, dtype: "int64" },
  ] as const;
  return executeMany(poolPrimitive, [x, samples], specs, attributes, operation);
}
