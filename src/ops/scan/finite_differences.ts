/** Derivatives of sampled functions by finite differences. */
import { underName } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber, axes, either, isListed, listOf } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { bytesOf, type DType, hasGradients, isComplex } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { reserve } from "../../tensor/reserve.ts";
import { normalizeAxes } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, neg, sub } from "../elementwise/arithmetic.ts";
import { div } from "../elementwise/division.ts";
import type { FloatOf } from "../elementwise/types.ts";
import { cat } from "../join/cat.ts";
import { reshape } from "../view/reshape.ts";
import { narrow } from "../view/slice.ts";
import { fusesNeighbors, neighbors } from "./trapezoid.cpu.ts";

/** The distance between samples along an axis, or their coordinates: a vector with one number per sample. */
type Spacing = number | Tensor;

/** Options of {@link gradient}. */
export interface GradientOptions {
  /**
   * The distance between samples, for all axes; or a list with a distance or a vector of coordinates for each axis of
   * `dim`. Default 1.
   */
  spacing?: Spacing | readonly Spacing[];
  /** The axes. Default all. */
  dim?: number | readonly number[] | undefined;
  /** The order of accuracy at the first and the last sample: 1 or 2. Default 1. */
  edgeOrder?: 1 | 2;
}

const aSpacing = either(
  aNumber({ holds: (value) => Number.isFinite(value) && value !== 0, expected: "a number other than 0" }),
  aTensor,
);
const gradientParameters = parameters("gradient", {
  x: operand(aTensor),
  spacing: optional(either(aSpacing, listOf(aSpacing, "a list of numbers or tensors")), 1),
  dim: optional(axes),
  edgeOrder: optional(aNumber({ holds: (value) => value === 1 || value === 2, expected: "1 or 2" }), 1),
});

/**
 * Estimates the derivative of a sampled function along each axis: by central differences, which are exact for
 * parabolas, and at the edges by one-sided differences. This is PyTorch's and NumPy's `gradient`; for derivatives of
 * programs, see {@link grad}.
 *
 * @param x samples, with more than `edgeOrder` along each axis; integers become float32
 * @returns a tensor of the shape of x for each axis of `dim`
 *
 * @example
 * gradient(tensor([1, 4, 9, 16])); // [float32 [3, 4, 6, 7]]
 *
 * @throws {ShapeError} for an axis out of range, named twice or with too few samples, or coordinates of another length.
 * @throws {ArgumentError} for a list of spacings whose length is not the number of axes.
 * @throws {DTypeError} for bools.
 */
export function gradient<D extends DType>(
  x: Tensor<D>,
  ...options: Given<GradientOptions, ["spacing", "dim", "edgeOrder"]>
): Tensor<FloatOf<D>>[];
export function gradient(...values: unknown[]): Tensor[] {
  const { x, spacing, dim, edgeOrder } = gradientParameters(values);
  if (x.dtype === "bool") throw new DTypeError("gradient", "bool", `expected numbers, got ${x.describe()}`);
  const along = normalizeAxes("gradient", dim, x.rank);
  const spacings = isListed(spacing) ? spacing : along.map(() => spacing);
  if (spacings.length !== along.length)
    throw new ArgumentError(
      "gradient",
      "wrongCount",
      `expected a spacing for each of ${along.length} axes, got ${spacings.length}`,
    );
  const samples = hasGradients(x.dtype) ? x : toDType(x, "float32");
  for (const [at, axis] of along.entries()) check(x, axis, spacings[at], edgeOrder);
  reserve(along.length * x.size * bytesOf(samples.dtype)); // check before the first axis is computed
  return underName("gradient", () =>
    tidy(() => along.map((axis, at) => alongAxis(samples, axis, spacings[at], edgeOrder === 2))),
  );
}

function check(x: Tensor, axis: number, spacing: Spacing, edgeOrder: number): void {
  const size = x.shape[axis];
  if (size <= edgeOrder)
    throw new ShapeError(
      "gradient",
      "tooFewSamples",
      `expected at least ${edgeOrder + 1} samples along axis ${axis}, got ${x.describe()}`,
    );
  if (!Tensor.isTensor(spacing) || (spacing.rank === 1 && spacing.size === size)) return;
  throw new ShapeError(
    "gradient",
    "shapesDiffer",
    `expected ${size} coordinates along axis ${axis} of ${x.describe()}, got ${spacing.describe()}`,
  );
}

/** The factors of three neighbors. */
type Factors = readonly [Tensor | number, Tensor | number, Tensor | number];

/**
 * The derivative of the parabola through three samples at the middle one. `before` and `after` are their distances.
 * Source: B. Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids", 1988.
 */
function middle(before: Tensor, after: Tensor): Factors {
  const both = add(before, after);
  return [
    neg(div(after, mul(before, both))),
    div(sub(after, before), mul(before, after)),
    div(before, mul(after, both)),
  ];
}

/** The derivative at the first of three samples. For the last one, reverse the signs and the order. */
function edge(near: Tensor, far: Tensor): Factors {
  const both = add(near, far);
  return [neg(div(add(mul(near, 2), far), mul(near, both))), div(both, mul(near, far)), neg(div(near, mul(far, both)))];
}

function combined(factors: Factors, samples: readonly Tensor[]): Tensor {
  const [first, ...others] = samples.map((each, at) => mul(each, factors[at]));
  return others.reduce((total, each) => add(total, each), first);
}

/** The longest slices along an axis but the last that one native call differentiates, some of them in each task. */
const MOST_FUSED = 1024;

function alongAxis(x: Tensor, axis: number, spacing: Spacing, isSecondOrder: boolean): Tensor {
  const size = x.shape[axis];
  if (!(Tensor.isTensor(spacing) || isSecondOrder) && fusesNeighbors(x, axis))
    if (axis === x.rank - 1 || size <= MOST_FUSED)
      return neighbors("gradient", x, { axis, distance: spacing, function: "slopes" });
  const part = (from: Tensor, start: number, length = 1): Tensor => narrow(from, axis, start, length);
  const distances = Tensor.isTensor(spacing) ? distancesOf(x, axis, spacing) : undefined;
  const step = (at: number): Tensor | number => (distances ? part(distances, at) : spacing);
  const inner = (): Tensor => {
    const [before, center, after] = tupleOf(
      [0, 1, 2].map((start) => part(x, start, size - 2)),
      3,
    );
    if (!distances) return div(sub(after, before), 2 * (spacing as number));
    return combined(middle(part(distances, 0, size - 2), part(distances, 1, size - 2)), [before, center, after]);
  };
  const outer = (isLast: boolean): Tensor => {
    const place = (at: number): number => (isLast ? size - 1 - at : at);
    if (!isSecondOrder) {
      const difference = sub(part(x, isLast ? size - 1 : 1), part(x, isLast ? size - 2 : 0));
      return div(difference, step(isLast ? size - 2 : 0));
    }
    const samples = [0, 1, 2].map((at) => part(x, place(at)));
    const sign = isLast ? -1 : 1;
    if (!distances) return mul(combined([-1.5, 2, -0.5], samples), sign / (spacing as number));
    const [near, far] = isLast ? [size - 2, size - 3] : [0, 1];
    return mul(combined(edge(part(distances, near), part(distances, far)), samples), sign);
  };
  return cat([outer(false), ...(size > 2 ? [inner()] : []), outer(true)], axis);
}

/** The distances between coordinates, along an axis of a tensor with the rank of x. */
function distancesOf(x: Tensor, axis: number, coordinates: Tensor): Tensor {
  const places = toDType(coordinates, isComplex(x.dtype) ? coordinates.dtype : x.dtype);
  const last = places.size - 1;
  const found = sub(narrow(places, 0, 1, last), narrow(places, 0, 0, last));
  return reshape(
    found,
    Array.from({ length: x.rank }, (_, at) => (at === axis ? last : 1)),
  );
}
