/** Quantiles and modes of slices in one call of the cpu backend, without gradients. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { execute } from "../../backend/dispatch.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { dtype, flag, oneOf, whole } from "../../backend/fields.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { currentCapture } from "../../observe/capture.ts";
import { slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";

export const interpolations = enumeration("QuantileInterpolation", [
  "linear",
  "lower",
  "higher",
  "midpoint",
  "nearest",
]);

interface QuantileAttributes {
  readonly axis: number;
  readonly chances: readonly number[];
  readonly interpolation: NameOf<typeof interpolations>;
  readonly skipsNan: boolean;
}

const quantileCall = cpuCall(
  "quantile",
  { dtype, quantiles: whole, interpolation: oneOf(interpolations), skipsNan: flag, slices: slices(1) },
  ["x", "chances", "out"],
);

const quantileCpu: Implementation<QuantileAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [out], attributes: { axis, chances, ...values } }) {
    const block = { dtype: x.dtype, quantiles: chances.length, ...values };
    quantileCall(operation, { ...block, slices: slicesOf([x], axis, { isOrdered: true }) }, [
      x,
      Float64Array.from(chances),
      out,
    ]);
  },
};

const quantilePrimitive = definePrimitive<QuantileAttributes>({
  name: "quantile",
  family: "reduction",
  implementations: { metal: onlyCpuFuses, cpu: quantileCpu, reference: onlyCpuFuses },
});

/** Whether {@link quantilesAlong} applies to floats with elements. A recorded call can't keep the array of chances. */
export const fusesQuantile = (x: Tensor): boolean =>
  x.rank > 0 && x.size > 0 && currentCapture() === null && fusesOnCpu(x);

/** @returns [quantiles, …], with x's other axes */
export const quantilesAlong = (operation: string, x: Tensor, attributes: QuantileAttributes): Tensor => {
  const shape = [attributes.chances.length, ...x.shape.toSpliced(attributes.axis, 1)];
  return execute(quantilePrimitive, [x], shape, x.dtype, attributes, operation);
};

interface ModeAttributes {
  readonly axis: number;
}

/** Longer slices are sorted faster by `sort`, which sorts by digits. So are more elements, on some processors. */
const LONGEST = 1 << 10;
const MOST_ELEMENTS = 1 << 14;

const modeCall = cpuCall("mode", { dtype, slices: slices(1) }, ["x", "indices"]);

const modeCpu: Implementation<ModeAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [indices], attributes: { axis } }) {
    modeCall(operation, { dtype: x.dtype, slices: slicesOf([x], axis, { isOrdered: true }) }, [x, indices]);
  },
};

const modePrimitive = definePrimitive<ModeAttributes>({
  name: "mode",
  family: "reduction",
  implementations: { metal: onlyCpuFuses, cpu: modeCpu, reference: onlyCpuFuses },
});

/** Whether {@link modePlaces} applies. */
export const fusesMode = (x: Tensor, axis: number): boolean =>
  x.shape[axis] <= LONGEST && x.size <= MOST_ELEMENTS && fusesOnCpu(x);

/** Returns the last index of each slice's mode, with the axis of size 1. */
export const modePlaces = (x: Tensor, axis: number): Tensor<"int64"> =>
  execute(modePrimitive, [x], x.shape.with(axis, 1), "int64", { axis }, "mode");
