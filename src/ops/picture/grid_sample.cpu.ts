/** Sampling of images by a grid as one call of the cpu backend, and its gradients as another. */
import { isGradEnabled } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, flag, oneOf, whole } from "../../backend/fields.ts";
import { hasOnlyCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { composedGradients } from "../gradient/composed_gradients.ts";

export const modes = enumeration("GridMode", ["bilinear", "nearest", "bicubic"]);

export const borders = enumeration("GridBorder", ["zeros", "border", "reflection"]);

interface GridAttributes {
  readonly mode: NameOf<typeof modes>;
  readonly border: NameOf<typeof borders>;
  readonly alignsCorners: boolean;
}

const fields = {
  dtype,
  mode: oneOf(modes),
  border: oneOf(borders),
  alignsCorners: flag,
  batch: whole,
  channels: whole,
  height: whole,
  width: whole,
  places: whole,
} as const;

const gridCall = cpuCall("gridSample", { ...fields, offsets: array(whole, 3) }, ["x", "grid", "result"]);

const gridGradientCall = cpuCall(
  "gridSampleGradient",
  { ...fields, hasX: flag, hasGrid: flag, offsets: array(whole, 5) },
  ["x", "grid", "gradient", "gradX", "gradGrid"],
);

/** Returns the fields that both calls have. */
function blockOf(attributes: GridAttributes, x: Tensor, grid: Tensor, others: readonly (Tensor | undefined)[]) {
  const [batch, channels, height, width] = x.shape;
  const places = elementCount(grid.shape.slice(1, -1));
  const offsets = [x, grid, ...others].map((each) => each?.offset ?? 0);
  return { ...attributes, dtype: x.dtype, batch, channels, height, width, places, offsets };
}

const gridCpu: Implementation<GridAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [x, grid], outputs: [result], attributes }) {
    gridCall(operation, blockOf(attributes, x, grid, [result]), [x, grid, result]);
  },
};

interface GradientAttributes extends GridAttributes {
  /** Which of x and the grid need a gradient. */
  readonly needs: readonly boolean[];
}

const gridGradientCpu: Implementation<GradientAttributes, [Tensor, Tensor, Tensor], readonly Tensor[]> = {
  run({ operation, inputs: [x, grid, gradient], outputs, attributes: { needs, ...attributes } }) {
    const [hasX, hasGrid] = needs;
    const others = [gradient, hasX ? outputs[0] : undefined, hasGrid ? outputs[hasX ? 1 : 0] : undefined];
    gridGradientCall(operation, { ...blockOf(attributes, x, grid, others), hasX, hasGrid }, [x, grid, ...others]);
  },
};

const onCpu = <Operation>(cpu: Operation) => ({ metal: onlyCpuFuses, cpu, reference: onlyCpuFuses });

const gridPrimitive = definePrimitive<GridAttributes>({
  name: "gridSample",
  family: "pooling",
  implementations: onCpu(gridCpu),
});

const gridGradientPrimitive = definePrimitive<GradientAttributes>({
  name: "gridSampleGradient",
  family: "pooling",
  implementations: onCpu(gridGradientCpu),
});

/** Whether {@link sampledImages} applies. */
export const fusesGrid = (x: Tensor, grid: Tensor): boolean => hasOnlyCpu(x, grid) && x.rank === 4 && x.size > 0;

/**
 * Samples images [batch, channels, height, width] at a grid [batch, …, 2]. `composed` computes the same with operations
 * that are differentiable any number of times.
 */
export function sampledImages(
  x: Tensor,
  grid: Tensor,
  attributes: GridAttributes,
  composed: (x: Tensor, grid: Tensor) => Tensor,
): Tensor {
  const wide = accumulationDType(x.dtype);
  const [batch, channels] = x.shape;
  const shape = [batch, channels, ...grid.shape.slice(1, -1)];
  const inputs = [x, grid].map((each) => contiguous(toDType(each, wide)));
  const result = execute(gridPrimitive, inputs, shape, wide, attributes, "gridSample");
  record("gridSample", inputs, [result], inputs, ([gradient], saved, needs) => {
    if (isGradEnabled() || !hasOnlyCpu(gradient))
      return composedGradients(([a, b]) => composed(a, b), saved, needs, gradient);
    const specs = saved.filter((_, at) => needs[at]).map((each) => ({ shape: each.shape, dtype: wide }));
    const given = [...saved, contiguous(gradient)];
    const found = executeMany(gridGradientPrimitive, given, specs, { ...attributes, needs }, "gridSampleGradient");
    return needs.map((isNeeded) => (isNeeded ? found.shift()! : null));
  });
  return toDType(result, x.dtype);
}
