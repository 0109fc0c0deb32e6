/** Shapes and views for property tests, with their elements computed one by one. */
import fc from "fast-check";
import { fromArray } from "../../src/ops/creation/tensor.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { slice } from "../../src/ops/view/slice.ts";
import type { Shape } from "../../src/tensor/shape.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";

export const shapes = (maxRank: number, maxSize = 5): fc.Arbitrary<number[]> =>
  fc.array(fc.nat(maxSize), { maxLength: maxRank });

/** Every position of a shape, row-major. */
export function places(shape: Shape): number[][] {
  return shape.reduce<number[][]>(
    (before, size) => before.flatMap((place) => Array.from({ length: size }, (_, index) => [...place, index])),
    [[]],
  );
}

/** The storage offset of each element of a view, row-major. */
export const offsets = ({
  shape,
  strides,
  offset,
}: Pick<Tensor, "strides" | "offset"> & { readonly shape: Shape }): number[] =>
  places(shape).map((place) => place.reduce((at, index, axis) => at + index * strides[axis], offset));

/** 0, 1, 2, … in a shape. */
export const counted = (shape: Shape): Tensor =>
  fromArray(
    Int32Array.from({ length: shape.reduce((product, size) => product * size, 1) }, (_, index) => index),
    shape,
  );

export type Step =
  | {
      readonly kind: "slice";
      readonly dim: number;
      readonly start: number;
      readonly end: number;
      readonly step: number;
    }
  | { readonly kind: "transpose"; readonly first: number; readonly second: number };

const bounds = fc.integer({ min: -7, max: 7 });
const axis = fc.nat(7);

/** Slices and transpositions of axes, to be applied one after the other. Axes count modulo the rank. */
export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant("slice" as const),
      dim: axis,
      start: bounds,
      end: bounds,
      step: fc.integer({ min: 1, max: 3 }),
    }),
    fc.record({ kind: fc.constant("transpose" as const), first: axis, second: axis }),
  ),
  { maxLength: 5 },
);

/** The view after the steps. */
export const viewAfter = (x: Tensor, list: readonly Step[]): Tensor =>
  list.reduce((view, step) => {
    if (view.rank === 0) return view;
    if (step.kind === "transpose") return transpose(view, step.first % view.rank, step.second % view.rank);
    const { start, end, step: every } = step;
    return slice(view, { start, end, step: every, dim: step.dim % view.rank });
  }, x);
