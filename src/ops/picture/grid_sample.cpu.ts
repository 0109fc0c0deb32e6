/** Sampling of images by a grid as one call of the cpu backend, without a gradient. */
import { needsGradient } from "../../autograd/record.ts";
import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, flag, oneOf, whole } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";

export const borders = enumeration("GridBorder", ["zeros", "border", "reflection"]);

interface GridAttributes {
  readonly border: NameOf<typeof borders>;
  readonly isNearest: boolean;
  readonly alignsCorners: boolean;
}

const gridCall = cpuCall(
  "gridSample",
  {
    dtype,
    border: oneOf(borders),
    isNearest: flag,
    alignsCorners: flag,
    batch: whole,
    channels: whole,
    height: whole,
    width: whole,
    places: whole,
    offsets: array(whole, 3),
  },
  ["x", "grid", "result"],
);

const gridCpu: Implementation<GridAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [x, grid], outputs: [result], attributes }) {
    const operands = [x, grid, result];
    const [batch, channels, height, width] = x.shape;
    const places = elementCount(grid.shape.slice(1, -1));
    const offsets = operands.map(({ offset }) => offset);
    gridCall(operation, { ...attributes, dtype: x.dtype, batch, channels, height, width, places, offsets }, operands);
  },
};

const gridPrimitive = definePrimitive<GridAttributes>({
  name: "gridSample",
  family: "pooling",
  implementations: { metal: onlyCpuFuses, cpu: gridCpu, reference: onlyCpuFuses },
});

/** Whether {@link sampledImages} applies. */
export const fusesGrid = (x: Tensor, grid: Tensor, mode: string): boolean =>
  firstBackend() === "cpu" &&
  capturing() === undefined &&
  x.rank === 4 &&
  mode !== "bicubic" &&
  x.size > 0 &&
  !needsGradient(x, grid) &&
  liftingOf([x, grid], undefined) === undefined;

/** Samples images [batch, channels, height, width] at a grid [batch, …, 2]. */
export function sampledImages(x: Tensor, grid: Tensor, attributes: GridAttributes): Tensor {
  const wide = accumulationDType(x.dtype);
  const [batch, channels] = x.shape;
  const shape = [batch, channels, ...grid.shape.slice(1, -1)];
  const inputs = [x, grid].map((each) => contiguous(toDType(each, wide)));
  return toDType(execute(gridPrimitive, inputs, shape, wide, attributes, "gridSample"), x.dtype);
}
