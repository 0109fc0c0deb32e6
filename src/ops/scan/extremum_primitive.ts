/** The primitive `runningExtremum`: one pass on cpu; other backends compose running extrema of other operations. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { dtype, flag } from "../../backend/fields.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";

export interface RunningExtremumAttributes {
  readonly axis: number;
  readonly isMinimum: boolean;
}

const runningExtremumCall = cpuCall("runningExtremum", { dtype, isMinimum: flag, slices: slices(3) }, [
  "x",
  "values",
  "indices",
]);

const runningExtremumCpu: Implementation<RunningExtremumAttributes, [Tensor], [Tensor, Tensor]> = {
  run({ operation, inputs: [x], outputs: [values, indices], attributes: { axis, isMinimum } }) {
    const operands = [x, values, indices];
    runningExtremumCall(operation, { dtype: x.dtype, isMinimum, slices: slicesOf(operands, axis) }, operands);
  },
};

const elsewhere = { missing: "running extrema are composed of other operations on this backend" } as const;

/** Computes values (of the dtype of x) and indices (int64), both of the shape of x. */
export const runningExtremumPrimitive = definePrimitive<RunningExtremumAttributes>({
  name: "runningExtremum",
  family: "scan",
  implementations: { metal: elsewhere, cpu: runningExtremumCpu, reference: elsewhere },
});
