/** `renorm` in one call of the cpu backend, without a gradient. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { array, dtype, real, whole } from "../../backend/fields.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";

interface RenormAttributes {
  readonly axis: number;
  readonly order: number;
  readonly largest: number;
  readonly eps: number;
}

const renormCall = cpuCall(
  "renorm",
  { dtype, outer: whole, count: whole, inner: whole, order: real, largest: real, eps: real, offsets: array(whole, 2) },
  ["x", "out"],
);

const renormCpu: Implementation<RenormAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [out], attributes: { axis, ...values } }) {
    const sizes = {
      outer: elementCount(x.shape.slice(0, axis)),
      count: x.shape[axis],
      inner: elementCount(x.shape.slice(axis + 1)),
    };
    renormCall(operation, { dtype: x.dtype, ...sizes, ...values, offsets: [x.offset, out.offset] }, [x, out]);
  },
};

const renormPrimitive = definePrimitive<RenormAttributes>({
  name: "renorm",
  family: "distance",
  implementations: { metal: onlyCpuFuses, cpu: renormCpu, reference: onlyCpuFuses },
});

/** Computes `renorm` of floats. */
export const renormed = (x: Tensor, attributes: RenormAttributes): Tensor =>
  execute(renormPrimitive, [contiguous(x)], x.shape, x.dtype, attributes, "renorm");
