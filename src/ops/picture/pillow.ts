/** Resizing of images as Pillow does: with an antialiasing filter, rounded to bytes after each axis. */
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { tensor } from "../creation/tensor.ts";
import { add, mul } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { floor } from "../elementwise/rounding.ts";
import { indexSelectAlong } from "../indexing/adjoint.ts";
import { cat } from "../join/cat.ts";
import { canResample, resample } from "../pooling/resample.ts";
import { reshape } from "../view/reshape.ts";
import { narrow } from "../view/slice.ts";
import { resampledBytes, wholeWeight } from "./resample_bytes.ts";
import { type Axis, type FilterName, mapOf, tapsOf } from "./taps.ts";

/** Pillow's weights are integers with this many fractional bits. */
const BITS = 22;
/** The number of elements that are converted to float64 at once. */
const PART = 2 ** 20;

/**
 * @internal Resizes an image. All bytes match Pillow 13.
 *
 * @param image uint8, [channels, height, width]
 * @returns uint8, [channels, ...size]
 *
 * Source: Pillow's `Resample.c`.
 */
export function resizeBytes(
  image: Tensor,
  size: readonly [height: number, width: number],
  filter: FilterName | "nearest",
): Tensor {
  return tidy(() => {
    const x = reshape(image, [1, ...image.shape]);
    const [[height, width], order] = [tupleOf(image.shape.slice(1), 2), [3, 2] as (2 | 3)[]];
    // Pillow 13 changes the order, and with it the rounding, if the height shrinks by more than twice the width.
    if (height - size[0] > 2 * Math.max(0, width - size[1])) order.reverse();
    const pass = filter === "nearest" ? nearest : along;
    const result = order.reduce<Tensor>((partial, at) => pass(partial, at, size[at - 2], filter as FilterName), x);
    return reshape(result, [image.shape[0], ...size]);
  });
}

/** Positions are sums of steps in float64, as in Pillow's `Geometry.c`. */
function nearest(x: Tensor, at: 2 | 3, output: number): Tensor {
  const size = x.shape[at];
  if (size === output) return x;
  const step = size / output;
  const places = new Int32Array(output);
  for (let index = 0, place = step / 2; index < output; index++, place += step)
    places[index] = Math.min(Math.trunc(place), size - 1);
  return indexSelectAlong(x, tensor(places), at, "interpolate");
}

function along(x: Tensor, at: 2 | 3, output: number, filter: FilterName): Tensor {
  const size = x.shape[at];
  if (size === output) return x;
  const axis = { size, output, factor: undefined, alignCorners: false };
  if (!canResample()) return resampledBytes(x, at, tapsOf(filter, axis, true)!, BITS);
  // Sums of integers are exact in float64. Parts have whole rows or columns.
  const other = at === 2 ? 3 : 2;
  const step = Math.max(1, Math.floor((PART * x.shape[other]) / x.size));
  const parts = Array.from({ length: Math.ceil(x.shape[other] / step) }, (_, index) =>
    narrow(x, other, index * step, Math.min(step, x.shape[other] - index * step)),
  );
  return cat(
    parts.map((part) => tidy(() => inFloat64(part, at, axis, filter))),
    other,
  );
}

function inFloat64(part: Tensor, at: 2 | 3, axis: Axis, filter: FilterName): Tensor {
  const same = part.shape[at === 2 ? 3 : 2];
  const map = mapOf(filter, axis, true);
  const whole = { ...map, weights: map.weights!.map((weight) => wholeWeight(weight, BITS)) };
  const unchanged = mapOf("nearest", { ...axis, size: same, output: same }, false);
  const sums = resample("interpolate", toDType(part, "float64"), at === 2 ? [whole, unchanged] : [unchanged, whole]);
  const bytes = floor(mul(add(sums, 2 ** (BITS - 1)), 2 ** -BITS));
  return toDType(clamp(bytes, 0, 255), "uint8");
}
