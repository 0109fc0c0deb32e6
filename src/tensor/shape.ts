/** Shapes, strides and axes. Strides and offsets are in elements; strides may be zero or negative. */
import { ShapeError } from "../core/errors.ts";

/** The size of each axis, the outermost first; `[]` is a scalar. At most 8 axes. */
export type Shape = readonly number[];

export const MAX_RANK = 8;

/** The number of elements of a shape; 1 for the empty shape. */
export function elementCount(shape: Shape): number {
  let count = 1;
  for (let axis = 0; axis < shape.length; axis++) count *= shape[axis]!;
  return count;
}

/** The strides of a row-major tensor without gaps. */
export function rowMajorStrides(shape: Shape): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= Math.max(shape[axis]!, 1);
  }
  return strides;
}

/**
 * The strides of a tensor without gaps whose axes lie in memory in the order of others' strides; row-major where an
 * axis repeats itself, which says nothing of an order.
 */
export function denseStrides(shape: Shape, like: readonly number[]): number[] {
  if (shape.some((size, axis) => size > 1 && like[axis] === 0)) return rowMajorStrides(shape);
  const inward = [...shape.keys()].sort((a, b) => Math.abs(like[b]!) - Math.abs(like[a]!));
  const dense = rowMajorStrides(inward.map((axis) => shape[axis]!));
  return shape.map((_, axis) => dense[inward.indexOf(axis)]!);
}

/**
 * Whether elements lie row-major without gaps. Strides of axes with one element, and of shapes without any, don't
 * matter.
 */
export function isRowMajor(shape: Shape, strides: readonly number[]): boolean {
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = shape[axis]!;
    if (size === 0) return true;
    if (size !== 1 && strides[axis] !== stride) return shape.includes(0);
    stride *= size;
  }
  return true;
}

export function sameShape(a: Shape, b: Shape): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let axis = 0; axis < a.length; axis++) if (a[axis] !== b[axis]) return false;
  return true;
}

export const formatShape = (shape: Shape): string => `[${shape.join(", ")}]`;

/** Checks a shape that a caller gave. @throws {ShapeError} for a size that is no whole number ≥ 0, or a rank over 8. */
export function checkShape(operation: string, shape: Shape): Shape {
  if (!Array.isArray(shape))
    throw new ShapeError(operation, "invalidShape", `expected shape to be a list of sizes, got ${String(shape)}`);
  checkRank(operation, shape);
  for (const size of shape) {
    if (!Number.isSafeInteger(size) || size < 0)
      throw new ShapeError(
        operation,
        "invalidShape",
        `expected sizes to be whole numbers of at least 0, got ${formatShape(shape)}`,
      );
  }
  if (!Number.isSafeInteger(elementCount(shape)))
    throw new ShapeError(operation, "invalidShape", `${formatShape(shape)} has more elements than a number can count`);
  return shape;
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
 * The shape that shapes broadcast to: aligned at the last axis, sizes equal or 1.
 *
 * @throws {ShapeError} naming the shapes and the axis where they differ.
 */
export function broadcastShapes(operation: string, ...shapes: readonly Shape[]): Shape {
  const [first] = shapes;
  if (first !== undefined && shapes.every((shape) => sameShape(shape, first))) return first;
  const rank = Math.max(...shapes.map((shape) => shape.length));
  const result = new Array<number>(rank).fill(1);
  for (const shape of shapes) {
    for (let axis = 0; axis < shape.length; axis++) {
      const at = rank - shape.length + axis;
      const size = shape[axis]!;
      if (size === 1 || size === result[at]) continue;
      if (result[at] !== 1)
        throw new ShapeError(
          operation,
          "shapesDiffer",
          `${shapes.map(formatShape).join(" and ")} can't be broadcast together: axis ${at - rank} has ${result[at]} ` +
            `and ${size}; sizes must be equal or 1`,
        );
      result[at] = size;
    }
  }
  checkRank(operation, result);
  return result;
}

/** The strides with which a tensor reads as the larger shape: 0 along what is repeated. */
export function broadcastStrides(shape: Shape, strides: readonly number[], target: Shape): readonly number[] {
  if (sameShape(shape, target)) return strides;
  const lead = target.length - shape.length;
  return target.map((size, axis) =>
    axis < lead || (shape[axis - lead] === 1 && size !== 1) ? 0 : strides[axis - lead]!,
  );
}

/** An axis counted from the front. @throws {ShapeError} where it is no whole number in [-rank, rank). */
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

/** Axes counted from the front, ascending, each once; all of them where `dims` is undefined. */
export function normalizeAxes(operation: string, dims: number | readonly number[] | undefined, rank: number): number[] {
  if (dims === undefined) return Array.from({ length: rank }, (_, axis) => axis);
  const axes = (typeof dims === "number" ? [dims] : dims).map((dim) => normalizeAxis(operation, dim, rank));
  if (new Set(axes).size !== axes.length)
    throw new ShapeError(operation, "axisTwice", `dim [${axes.join(", ")}] names an axis twice`);
  return axes.filter((axis) => axis < rank).sort((a, b) => a - b);
}

/** A loop nest over operands of one shape, with as few loops as can be. */
export interface LoopNest {
  readonly shape: readonly number[];
  /** For each operand, its strides. */
  readonly strides: readonly (readonly number[])[];
}

/**
 * Drops axes of one element and merges adjacent axes that are contiguous in every operand, so that a contiguous call
 * has rank 1 (0 for one element) and kernels see few axes.
 */
export function collapse(shape: Shape, operands: readonly (readonly number[])[]): LoopNest {
  const merged = { shape: [] as number[], strides: operands.map((): number[] => []) };
  for (let axis = 0; axis < shape.length; axis++) {
    const size = shape[axis]!;
    if (size === 1) continue;
    const last = merged.shape.length - 1;
    const joins =
      last >= 0 && operands.every((strides, operand) => merged.strides[operand]![last] === strides[axis]! * size);
    if (joins) merged.shape[last]! *= size;
    else merged.shape.push(size);
    for (const [operand, strides] of operands.entries())
      merged.strides[operand]![joins ? last : last + 1] = strides[axis]!;
  }
  return merged;
}
