import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { type AxisArguments, axis as axisKind } from "../../core/kinds.ts";
import { operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { tensorList } from "../../tensor/kinds.ts";
import { checkRank, normalizeAxis, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { axisOf } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { fitsAlong, isNothing, joined } from "./joined.ts";

/** Options of {@link cat} and {@link stack}. */
export interface CatOptions {
  /** The axis along which tensors are joined. Default 0. */
  dim?: number;
}

/**
 * Concatenates tensors along an axis, in their common dtype. Sizes on the other axes must be equal. A tensor of shape
 * [0] is ignored, regardless of the rank of the others.
 *
 * @example
 * cat([tensor([[1, 2]]), tensor([[3, 4]])]); // [[1, 2], [3, 4]]
 *
 * @throws {ArgumentError} for an empty list.
 * @throws {ShapeError} if a size on another axis differs, or a tensor has no axes.
 */
export function cat<D extends DType>(tensors: readonly Tensor<D>[], ...options: AxisArguments<CatOptions>): Tensor<D>;
export function cat(...values: unknown[]): Tensor {
  const { tensors, dim } = catParameters(values);
  const model = tensors.find((x) => !isNothing(x)) ?? firstOf("cat", tensors);
  const axis = axisOf("cat", model, dim);
  for (let index = 0; index < tensors.length; index++) checkFits(tensors[index], index, model, axis);
  return joined("cat", tensors, model, axis);
}

const joining = { tensors: operand(tensorList), dim: optional(axisKind, 0) } as const;
const catParameters = parameters("cat", joining);

/**
 * Joins tensors of equal shape along a new axis, in their common dtype.
 *
 * @example
 * stack([tensor([1, 2]), tensor([3, 4])], 1); // [[1, 3], [2, 4]]
 *
 * @throws {ArgumentError} for an empty list.
 * @throws {ShapeError} if shapes differ, or for an axis out of range.
 */
export function stack<D extends DType>(tensors: readonly Tensor<D>[], ...options: AxisArguments<CatOptions>): Tensor<D>;
export function stack(...values: unknown[]): Tensor {
  const { tensors, dim } = stackParameters(values);
  const first = firstOf("stack", tensors);
  const axis = normalizeAxis("stack", dim, first.rank + 1);
  checkRank("stack", first.shape.toSpliced(axis, 0, tensors.length));
  for (const [index, x] of tensors.entries())
    if (!sameShape(x.shape, first.shape))
      throw new ShapeError(
        "stack",
        "shapesDiffer",
        `expected tensors of equal shape, got ${x.describe()} as tensor ${index} and ${first.describe()} as the first`,
      );
  const slices = tensors.map((x) => unsqueeze(x, axis));
  return joined("stack", slices, slices[0], axis);
}

const stackParameters = parameters("stack", joining);

function firstOf<D extends DType>(operation: string, tensors: readonly Tensor<D>[]): Tensor<D> {
  const [first] = tensors;
  if (first === undefined)
    throw new ArgumentError(operation, "nothingToJoin", "expected at least one tensor, got an empty list");
  return first;
}

function checkFits(x: Tensor, index: number, model: Tensor, axis: number): void {
  if (!isNothing(x) && !fitsAlong(x, model, axis))
    throw new ShapeError(
      "cat",
      "shapesDiffer",
      `expected tensors of equal rank and, except on axis ${axis}, equal sizes, ` +
        `got ${x.describe()} as tensor ${index} and ${model.describe()}`,
    );
}
