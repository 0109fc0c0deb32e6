/** Functions on shapes, strides and axes. Strides and offsets are in elements; strides may be zero or negative. */
import { ShapeError } from "../core/errors.ts";
import { freezeList, isEqual, plainList, rowMajor } from "./frozen.ts";

/** The size of each axis, outermost first; `[]` is a scalar. At most 8 axes. */
export type Shape = readonly number[];

/**
 * The shape of a tensor. The compiler doesn't know the rank, so it takes the size of every axis that a tensor may have
 * for a number: `const [batch, length] = x.shape` needs no check or assertion, also with `noUncheckedIndexedAccess`.
 * {@link Tensor.sizes} checks the rank.
 */
export interface TensorShape extends ReadonlyArray<number> {
  readonly 0: number;
  readonly 1: number;
  readonly 2: number;
  readonly 3: number;
  readonly 4: number;
  readonly 5: number;
  readonly 6: number;
  readonly 7: number;
  /** Returns the size of an axis; a negative one counts from the end. */
  at(axis: number): number;
}

/** What a matcher compares with a value: lists of numbers of any length in place of {@link TensorShape}. */
export type Expected<T> = T extends TensorShape
  ? Shape
  : T extends readonly unknown[]
    ? { readonly [Name in keyof T]: Expected<T[Name]> }
    : T extends Readonly<Record<string, unknown>>
      ? { readonly [Name in keyof T]: Expected<T[Name]> }
      : T;

declare module "bun:test" {
  // Bun's types expect the type of the value: `expect(x.shape).toEqual([2, 3])` would need all eight sizes.
  interface Matchers<T> {
    toEqual(expected: T): void;
    toEqual<X = T>(expected: NoInfer<X>): void;
    toEqual(expected: Expected<T>): void;
    toStrictEqual(expected: T): void;
    toStrictEqual<X = T>(expected: NoInfer<X>): void;
    toStrictEqual(expected: Expected<T>): void;
  }
}

export const MAX_RANK = 8;

/** Returns the number of elements of a shape; 1 for the empty shape. */
export function elementCount(shape: Shape): number {
  const sizes = plainList(shape);
  let count = 1;
  for (let axis = 0; axis < sizes.length; axis++) count *= sizes[axis];
  return count;
}

/** Returns the strides of a contiguous row-major tensor. */
export const rowMajorStrides = (shape: Shape): number[] => rowMajor(plainList(shape));

/**
 * Returns dense strides with the axis order of `like`; row-major if `like` has a zero stride, which defines no order.
 */
export function denseStrides(shape: Shape, like: readonly number[]): number[] {
  const [sizes, steps] = [plainList(shape), plainList(like)];
  if (sizes.some((size, axis) => size > 1 && steps[axis] === 0)) return rowMajor(sizes);
  const inward = [...sizes.keys()].sort((a, b) => Math.abs(steps[b]) - Math.abs(steps[a]));
  const dense = rowMajor(inward.map((axis) => sizes[axis]));
  return sizes.map((_, axis) => dense[inward.indexOf(axis)]);
}

/**
 * Whether elements are contiguous in row-major order. Strides of axes with one element and of empty shapes are ignored.
 */
export function isRowMajor(shape: Shape, strides: readonly number[]): boolean {
  const sizes = plainList(shape);
  const steps = plainList(strides);
  let stride = 1;
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    const size = sizes[axis];
    if (size === 0) return true;
    if (size !== 1 && steps[axis] !== stride) return sizes.includes(0);
    stride *= size;
  }
  return true;
}

export function sameShape(a: Shape, b: Shape): boolean {
  return a === b || isEqual(plainList(a), plainList(b));
}

export const formatShape = (shape: Shape): string => `[${shape.join(", ")}]`;

/**
 * Checks a caller's shape and returns a frozen copy.
 *
 * @throws {ShapeError} for a size that is not a whole number ≥ 0, or a rank over 8.
 */
export function checkShape(operation: string, shape: Shape): Shape {
  if (!Array.isArray(shape))
    throw new ShapeError(operation, "invalidShape", `expected shape to be a list of sizes, got ${String(shape)}`);
  const sizes = [...plainList(shape)];
  checkRank(operation, sizes);
  for (const size of sizes) {
    if (!Number.isSafeInteger(size) || size < 0)
      throw new ShapeError(
        operation,
        "invalidShape",
        `expected sizes to be whole numbers of at least 0, got ${formatShape(sizes)}`,
      );
  }
  if (!Number.isSafeInteger(elementCount(sizes)))
    throw new ShapeError(operation, "invalidShape", `${formatShape(sizes)} has more elements than a number can count`);
  return freezeList(sizes);
}

export function checkRank(operation: string, shape: Shape): void {
  if (shape.length > MAX_RANK)
    throw new ShapeError(
      operation,
      "rankTooHigh",
      `expected a rank of at most ${MAX_RANK}, got rank ${shape.length} (${formatShape(shape)})`,
    );
}

/**
 * Returns the shape that shapes broadcast to. They are aligned at the last axis; sizes must be equal or 1.
 *
 * @throws {ShapeError} with the shapes and the axis at which they differ.
 */
export function broadcastShapes(operation: string, ...given: readonly Shape[]): Shape {
  if (given.length > 0 && areSame(given)) return given[0];
  let rank = 0;
  for (let index = 0; index < given.length; index++) rank = Math.max(rank, given[index].length);
  const result = new Array<number>(rank).fill(1);
  for (let index = 0; index < given.length; index++) {
    const shape = plainList(given[index]);
    for (let axis = 0; axis < shape.length; axis++) {
      const at = rank - shape.length + axis;
      const size = shape[axis];
      if (size === 1 || size === result[at]) continue;
      if (result[at] !== 1)
        throw new ShapeError(
          operation,
          "shapesDiffer",
          `${given.map(formatShape).join(" and ")} can't be broadcast together: axis ${at - rank} has ${result[at]} ` +
            `and ${size}; sizes must be equal or 1`,
        );
      result[at] = size;
    }
  }
  checkRank(operation, result);
  return result;
}

function areSame(shapes: readonly Shape[]): boolean {
  for (let index = 1; index < shapes.length; index++) if (!sameShape(shapes[index], shapes[0])) return false;
  return true;
}

/** Returns the strides that broadcast a tensor to a larger shape: 0 along repeated axes. */
export function broadcastStrides(shape: Shape, strides: readonly number[], target: Shape): readonly number[] {
  if (sameShape(shape, target)) return strides;
  const from = plainList(shape);
  const to = plainList(target);
  const steps = plainList(strides);
  const lead = to.length - from.length;
  return to.map((size, axis) => (axis < lead || (from[axis - lead] === 1 && size !== 1) ? 0 : steps[axis - lead]));
}

/** Returns an axis counted from the front. @throws {ShapeError} if it is not a whole number in [-rank, rank). */
export function normalizeAxis(operation: string, dim: number, rank: number, name = "dim"): number {
  const least = Math.max(rank, 1);
  if (!Number.isInteger(dim) || dim < -least || dim >= least)
    throw new ShapeError(
      operation,
      "axisOutOfRange",
      `expected ${name} to be from ${-least} to ${least - 1} for a tensor of rank ${rank}, got ${dim}`,
    );
  return dim < 0 ? dim + least : dim;
}

/** A cache of the lists of all axes, by rank. */
const allAxes: number[][] = [];

/** Returns axes counted from the front in ascending order; all axes if `dims` is undefined. */
export function normalizeAxes(operation: string, dims: number | readonly number[] | undefined, rank: number): number[] {
  if (dims === undefined) {
    allAxes[rank] ??= Array.from({ length: rank }, (_, axis) => axis);
    return allAxes[rank].slice();
  }
  if (typeof dims === "number") {
    const axis = normalizeAxis(operation, dims, rank);
    return rank === 0 ? [] : [axis];
  }
  const axes = dims.map((dim) => normalizeAxis(operation, dim, rank));
  if (axes.length === 1) return rank === 0 ? [] : axes;
  if (new Set(axes).size !== axes.length)
    throw new ShapeError(operation, "axisTwice", `dim [${axes.join(", ")}] names an axis twice`);
  return axes.filter((axis) => axis < rank).sort((a, b) => a - b);
}

/** A loop nest with a minimal number of loops over operands of one shape. */
export interface LoopNest {
  readonly shape: readonly number[];
  /** The strides of each operand. */
  readonly strides: readonly (readonly number[])[];
}

/**
 * Drops axes of size 1 and merges adjacent axes that are contiguous in every operand. A contiguous call gets rank 1 (0
 * for one element), and kernels get few axes.
 */
export function collapse(given: Shape, operands: readonly (readonly number[])[]): LoopNest {
  const sizes = plainList(given);
  const shape: number[] = [];
  const strides = operands.map((): number[] => []);
  for (let axis = 0; axis < sizes.length; axis++) {
    const size = sizes[axis];
    if (size === 1) continue;
    const last = shape.length - 1;
    const joins = last >= 0 && continues(strides, last, operands, axis, size);
    if (joins) shape[last] *= size;
    else shape.push(size);
    const at = shape.length - 1;
    for (let operand = 0; operand < operands.length; operand++)
      strides[operand][at] = plainList(operands[operand])[axis];
  }
  return { shape, strides };
}

/** Whether the last merged axis and the next one are contiguous in every operand. */
function continues(
  merged: readonly (readonly number[])[],
  last: number,
  operands: readonly (readonly number[])[],
  axis: number,
  size: number,
): boolean {
  for (let operand = 0; operand < operands.length; operand++)
    if (merged[operand][last] !== plainList(operands[operand])[axis] * size) return false;
  return true;
}
