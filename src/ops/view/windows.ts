/** Views of sliding windows along one axis. */

import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { lastElement } from "../../core/collections.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { axis as axisKind, someNumber } from "../../core/kinds.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { checkRank, normalizeAxis, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add_ } from "../copy/inplace.ts";
import { filled } from "./embed.ts";
import { reshape } from "./reshape.ts";
import { narrow, select, slice } from "./slice.ts";
import { viewOf } from "./view.ts";

/**
 * Returns a view of the windows of `size` elements along an axis, one every `step` elements, as NumPy's
 * `sliding_window_view`. The elements of a window are a new last axis. The method `x.unfold(dim, size, step)`,
 * PyTorch's name, is the same.
 *
 * @param size the number of elements of a window
 * @param step the distance between windows
 * @returns x's shape with ⌊(n − size) / step⌋ + 1 windows along the axis of n elements, then [size]
 *
 * @example
 * slidingWindows(tensor([1, 2, 3, 4]), 0, 2, 1); // float32 [[1, 2], [2, 3], [3, 4]]
 *
 * @throws {ShapeError} for an axis out of range, or a window larger than it.
 * @throws {ArgumentError} if `size` is not a whole number of at least 0, or `step` not one of at least 1.
 */
export function slidingWindows<D extends DType>(x: Tensor<D>, dim: number, size: number, step: number): Tensor<D>;
export function slidingWindows(...values: unknown[]): Tensor {
  const { x, dim, size, step } = slidingWindowsParameters(values);
  const axis = normalizeAxis("slidingWindows", dim, x.rank);
  const length = x.shape[axis] ?? 1; // a scalar is a single window
  for (const [name, value, least] of [
    ["size", size, 0],
    ["step", step, 1],
  ] as const)
    if (!Number.isSafeInteger(value) || value < least)
      throw new ArgumentError(
        "slidingWindows",
        "invalidSize",
        `expected ${name} to be a whole number of at least ${least}, got ${value}`,
      );
  if (size > length)
    throw new ShapeError(
      "slidingWindows",
      "windowTooLarge",
      `expected size to be at most ${length}, the size of axis ${axis} of ${x.describe()}, got ${size}`,
    );
  if (x.rank === 0) return narrow(reshape(x, [1]), 0, 0, size);
  checkRank("slidingWindows", [...x.shape, size]);
  return windowsAlong(x, axis, size, step);
}
slidingWindows.method = "same" as const;
const slidingWindowsParameters = parameters("slidingWindows", {
  x: operand(aTensor),
  dim: required(axisKind),
  size: required(someNumber),
  step: required(someNumber),
});

function windowsAlong(x: Tensor, axis: number, size: number, step: number): Tensor {
  const { shape } = x;
  const count = Math.floor((shape[axis] - size) / step) + 1;
  return viewOf(
    "slidingWindows",
    x,
    [...shape.with(axis, count), size],
    [...x.strides.with(axis, x.strides[axis] * step), x.strides[axis]],
    x.offset,
    ([gradient]) => [addedWindows(gradient, axis, step, shape)],
  );
}

/** Computes the adjoint: adds windows where they overlap. */
function addedWindows(windows: Tensor, axis: number, step: number, shape: Shape): Tensor {
  const [count, size] = [windows.shape[axis], lastElement(windows.shape)];
  const result = tidy(() =>
    noGrad(() => {
      const { dtype } = windows;
      const wide = isFloat(dtype) ? accumulationDType(dtype) : dtype;
      const total = filled(shape, wide, wide === "int64" ? 0n : 0);
      for (let at = 0; at < size && count > 0; at++)
        add_(
          slice(total, { dim: axis, start: at, end: at + (count - 1) * step + 1, step }),
          toDType(select(windows, -1, at), wide),
        );
      return toDType(total, dtype);
    }),
  );
  record("addedWindows", [windows], [result], [], ([gradient]) => [windowsAlong(gradient, axis, size, step)]);
  return result;
}
