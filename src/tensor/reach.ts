import { plainList } from "./frozen.ts";
import type { Tensor } from "./tensor.ts";

/** Returns the range of storage elements that a tensor covers: the first, and the count up to the last. */
export function reachOf({ shape, strides: steps, offset }: Tensor): { first: number; count: number } {
  const strides = plainList(steps);
  let first = offset;
  let last = offset;
  const sizes = plainList(shape);
  for (let axis = 0; axis < sizes.length; axis++) {
    if (sizes[axis] === 0) return { first: offset, count: 0 };
    const span = (sizes[axis] - 1) * strides[axis];
    if (span < 0) first += span;
    else last += span;
  }
  return { first, count: last - first + 1 };
}
