/** Integrals of equally spaced samples in one call of the cpu backend, without a gradient. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { execute } from "../../backend/dispatch.ts";
import { dtype, flag, real } from "../../backend/fields.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { slicesOf } from "../../tensor/slices.ts";
import { Tensor } from "../../tensor/tensor.ts";

interface TrapezoidAttributes {
  readonly axis: number;
  readonly distance: number;
  readonly isCumulative: boolean;
}

const trapezoidCall = cpuCall("trapezoid", { dtype, isCumulative: flag, distance: real, slices: slices(2) }, [
  "y",
  "out",
]);

const trapezoidCpu: Implementation<TrapezoidAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [y], outputs: [out], attributes: { axis, ...values } }) {
    // a view with y's shape, of which the call writes the first elements along the axis
    const strides = values.isCumulative ? out.strides : out.strides.toSpliced(axis, 0, 0);
    using results = new Tensor(out.storage, out.dtype, y.shape, strides, out.offset);
    trapezoidCall(operation, { dtype: y.dtype, ...values, slices: slicesOf([y, results], axis) }, [y, out]);
  },
};

const trapezoidPrimitive = definePrimitive<TrapezoidAttributes>({
  name: "trapezoid",
  family: "scan",
  implementations: { metal: onlyCpuFuses, cpu: trapezoidCpu, reference: onlyCpuFuses },
});

/** Whether {@link integrals} applies: to floats of at least two samples, if nothing is recorded. */
export const fusesTrapezoid = (y: Tensor, axis: number): boolean =>
  isFloat(y.dtype) && y.shape[axis] > 1 && fusesOnCpu(y);

/** Integrates along an axis, which the result lacks, or has with one element less if `isCumulative`. */
export function integrals(operation: string, y: Tensor, attributes: TrapezoidAttributes): Tensor {
  const { axis, isCumulative } = attributes;
  const shape = isCumulative ? y.shape.with(axis, y.shape[axis] - 1) : y.shape.toSpliced(axis, 1);
  return execute(trapezoidPrimitive, [y], shape, y.dtype, attributes, operation);
}
