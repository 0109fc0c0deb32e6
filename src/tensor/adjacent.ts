/** Views that are adjacent in memory, as those of `split` are. */
import { isEqual, plainList } from "./frozen.ts";
import type { Shape } from "./shape.ts";
import type { Tensor } from "./tensor.ts";

/** The dtype and the layout of a tensor: all that matters here. */
type Layout = Pick<Tensor, "storage" | "dtype" | "shape" | "strides" | "offset">;

/**
 * The axis along which views follow each other in one memory, the first before the second and so on, so that together
 * they are one view with that axis as long as all of theirs; undefined where they don't.
 */
export function adjacentAxis(views: readonly Layout[]): number | undefined {
  const [first, ...others] = views;
  if (!first || others.some((own) => !isLike(first, own))) return undefined;
  const axes = [...first.shape.keys()].filter((axis) => areSuccessive(views, axis));
  return axes.find((axis) => others.every(({ shape }) => differOnlyIn(axis, first.shape, shape)));
}

const isLike = (a: Layout, b: Layout): boolean =>
  a.storage === b.storage && a.dtype === b.dtype && isEqual(plainList(a.strides), plainList(b.strides));

const areSuccessive = (views: readonly Layout[], axis: number): boolean =>
  views.every(({ offset }, at) => {
    const before = views[at - 1];
    return before === undefined || offset === before.offset + before.shape[axis]! * before.strides[axis]!;
  });

const differOnlyIn = (axis: number, a: Shape, b: Shape): boolean =>
  plainList(a).every((size, at) => at === axis || size === plainList(b)[at]);
