/** The primitive of cross products: in one pass on cpu, composed of other operations elsewhere. */
import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { cpuCall, nest } from "../../backend/cpu/call.ts";
import { array, dtype, whole } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { broadcastStrides, collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

interface CrossAttributes {
  /** The axis of the vectors' three elements. */
  readonly axis: number;
}

const crossCall = cpuCall("cross", { dtype, offsets: array(whole, 3), strides: array(whole, 3), nest: nest(3) }, [
  "a",
  "b",
  "out",
]);

const crossCpu: Implementation<CrossAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs, outputs: [out], attributes: { axis } }) {
    const operands = [...inputs, out];
    const strides = operands.map((x) => broadcastStrides(x.shape, x.strides, out.shape));
    const block = {
      dtype: out.dtype,
      offsets: operands.map(({ offset }) => offset),
      strides: strides.map((each) => each[axis]),
      nest: collapse(
        out.shape.toSpliced(axis, 1),
        strides.map((each) => each.toSpliced(axis, 1)),
      ),
    };
    crossCall(operation, block, operands);
  },
};

export const crossPrimitive = definePrimitive<CrossAttributes>({
  name: "cross",
  family: "elementwise",
  implementations: { metal: onlyCpuFuses, cpu: crossCpu, reference: onlyCpuFuses },
});

/** Whether the primitive can compute operands of one dtype. */
export const hasCrossKernel = (a: Tensor, b: Tensor): boolean =>
  firstBackend() === "cpu" &&
  (a.dtype === "float32" || a.dtype === "float64") &&
  capturing() === undefined &&
  liftingOf([a, b], undefined) === undefined;
