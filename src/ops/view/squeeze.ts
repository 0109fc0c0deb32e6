import { type AxisArguments, axes, axis as axisKind } from "../../core/kinds.ts";
import { operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { checkRank, normalizeAxes, normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { reshape } from "./reshape.ts";
import { viewOf } from "./view.ts";

/** Options of {@link squeeze}. */
export interface SqueezeOptions {
  /** The axes to remove if they have size 1. Default: all. */
  dim?: number | readonly number[];
}

/**
 * Returns a view without axes of size 1. Axes of any other size are kept, even if `dim` contains them.
 *
 * @example
 * squeeze(zeros([1, 2, 1]), 0); // [2, 1]
 *
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function squeeze<D extends DType>(x: Tensor<D>, ...options: AxisArguments<SqueezeOptions>): Tensor<D>;
export function squeeze(...values: unknown[]): Tensor {
  const { x, dim } = squeezeParameters(values);
  const named = normalizeAxes("squeeze", dim, x.rank);
  const stays = x.shape.map((size, axis) => size !== 1 || !named.includes(axis));
  const shape = x.shape;
  return viewOf(
    "squeeze",
    x,
    x.shape.filter((_, axis) => stays[axis]),
    x.strides.filter((_, axis) => stays[axis]),
    x.offset,
    ([gradient]) => [reshape(gradient, shape)],
  );
}
squeeze.method = "same" as const;
const squeezeParameters = parameters("squeeze", { x: operand(aTensor), dim: optional(axes) });

/**
 * Returns a view with a new axis of size 1.
 *
 * @param dim the position of the new axis; −1 makes it the last one
 * @returns […, 1, …]
 *
 * @example
 * unsqueeze(zeros([2, 3]), -1); // [2, 3, 1]
 *
 * @throws {ShapeError} for an axis out of range, or a rank over 8.
 */
export function unsqueeze<D extends DType>(x: Tensor<D>, dim: number): Tensor<D>;
export function unsqueeze(...values: unknown[]): Tensor {
  const { x, dim } = unsqueezeParameters(values);
  const axis = normalizeAxis("unsqueeze", dim, x.rank + 1);
  const shape = x.shape.toSpliced(axis, 0, 1);
  checkRank("unsqueeze", shape);
  const inputShape = x.shape;
  const stride = (x.shape[axis] ?? 1) * (x.strides[axis] ?? 1);
  return viewOf("unsqueeze", x, shape, x.strides.toSpliced(axis, 0, stride), x.offset, ([gradient]) => [
    reshape(gradient, inputShape),
  ]);
}
unsqueeze.method = "same" as const;
const unsqueezeParameters = parameters("unsqueeze", { x: operand(aTensor), dim: required(axisKind) });
