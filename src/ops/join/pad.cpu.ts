/** The primitives of padding: one pass on cpu. On other backends, padding is composed of other operations. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, oneOf, whole } from "../../backend/fields.ts";
import { hasOnlyCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { isComplex } from "../../tensor/dtype.ts";
import { MAX_RANK } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

export const padModes = enumeration("PadMode", ["constant", "reflect", "replicate", "circular"]);

export interface PadAttributes {
  readonly mode: NameOf<typeof padModes>;
  /** The number of elements to add before and after each axis. */
  readonly before: readonly number[];
  readonly after: readonly number[];
}

const axes = array(whole, MAX_RANK);
const border = { sizes: axes, strides: axes, before: axes, after: axes };
const mode = oneOf(padModes);
const padCall = cpuCall("pad", { dtype, mode, rank: whole, offset: whole, valueOffset: whole, ...border }, [
  "x",
  "value",
  "output",
]);
const padGradientCall = cpuCall("padGradient", { dtype, mode, rank: whole, offset: whole, ...border }, [
  "gradient",
  "output",
]);

const padCpu: Implementation<PadAttributes, [Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs: [x, value], outputs: [output], attributes }) {
    const { dtype: type, offset, shape: sizes, strides, rank } = x;
    const block = { dtype: type, rank, offset, valueOffset: value?.offset ?? 0, sizes, strides, ...attributes };
    padCall(operation, block, [x, value, output]);
  },
};

const padGradientCpu: Implementation<PadAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [gradient], outputs: [output], attributes }) {
    const { dtype: type, offset, strides, rank } = gradient;
    const block = { dtype: type, rank, offset, sizes: output.shape, strides, ...attributes };
    padGradientCall(operation, block, [gradient, output]);
  },
};

const onCpu = <Operation>(cpu: Operation) => ({ metal: onlyCpuFuses, cpu, reference: onlyCpuFuses });

/** Inputs: x, and in mode `constant` a scalar. The output is contiguous. */
export const padPrimitive = definePrimitive<PadAttributes>({
  name: "pad",
  family: "copy",
  implementations: onCpu(padCpu),
});

/** The gradient of padding with copies of elements. Input: the result's gradient. Output: x's gradient, contiguous. */
export const padGradientPrimitive = definePrimitive<PadAttributes>({
  name: "padGradient",
  family: "copy",
  implementations: onCpu(padGradientCpu),
});

/** Whether the primitives support a tensor. */
export const hasPadKernel = (x: Tensor): boolean => x.rank > 0 && !isComplex(x.dtype) && hasOnlyCpu(x);
