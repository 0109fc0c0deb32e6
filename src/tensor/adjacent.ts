/** Detects views that are adjacent in memory, such as those of `split`. */
import { isEqual, plainList } from "./frozen.ts";
import type { Shape } from "./shape.ts";
import type { Tensor } from "./tensor.ts";

/** The dtype and layout of a tensor. */
type Layout = Pick<Tensor, "storage" | "dtype" | "shape" | "strides" | "offset">;

/**
 * Returns the axis along which views of one storage follow each other without gaps, so that their concatenation along
 * that axis is itself a view; undefined if there is none.
 */
export function adjacentAxis(views: readonly Layout[]): number | undefined {
  const [first, ...others] = views;
  if (!first || others.some((other) => !isLike(first, other))) return undefined;
  const axes = [...first.shape.keys()].filter((axis) => areSuccessive(views, axis));
  return axes.find((axis) => others.every(({ shape }) => differOnlyIn(axis, first.shape, shape)));
}

const isLike = (a: Layout, b: Layout): boolean =>
  a.storage === b.storage && a.dtype === b.dtype && isEqual(plainList(a.strides), plainList(b.strides));

const areSuccessive = (views: readonly Layout[], axis: number): boolean =>
  views.every(({ offset }, at) => {
    const before = views[at - 1];
    return before === undefined || offset === before.offset + before.shape[axis] * before.strides[axis];
  });

const differOnlyIn = (axis: number, a: Shape, b: Shape): boolean =>
  plainList(a).every((size, at) => at === axis || size === plainList(b)[at]);
