import { plainList } from "./frozen.ts";
import type { Tensor } from "./tensor.ts";

/** Returns the range of storage elements that a tensor covers: the first, and the count up to the last. */
export function reachOf({ shape, strides: steps, offset }: Tensor): { first: number; count: number } {
  const strides = plainList(steps);
  let first = offset;
  let last = offset;
  for (const [axis, size] of plainList(shape).entries()) {
    if (size === 0) return { first: offset, count: 0 };
    const span = (size - 1) * strides[axis];
    if (span < 0) first += span;
    else last += span;
  }
  return { first, count: last - first + 1 };
}
