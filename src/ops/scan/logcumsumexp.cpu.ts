/** Running logarithms of sums of exponentials in one call of the cpu backend, without a gradient. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { execute } from "../../backend/dispatch.ts";
import { dtype } from "../../backend/fields.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";

interface LogcumsumexpAttributes {
  readonly axis: number;
}

const logcumsumexpCall = cpuCall("logcumsumexp", { dtype, slices: slices(2) }, ["x", "out"]);

const logcumsumexpCpu: Implementation<LogcumsumexpAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [out], attributes: { axis } }) {
    logcumsumexpCall(operation, { dtype: x.dtype, slices: slicesOf([x, out], axis) }, [x, out]);
  },
};

const logcumsumexpPrimitive = definePrimitive<LogcumsumexpAttributes>({
  name: "logcumsumexp",
  family: "scan",
  implementations: { metal: onlyCpuFuses, cpu: logcumsumexpCpu, reference: onlyCpuFuses },
});

/** Computes floats of at least one axis. */
export const runningLogarithms = (x: Tensor, axis: number): Tensor =>
  execute(logcumsumexpPrimitive, [x], x.shape, x.dtype, { axis }, "logcumsumexp");
