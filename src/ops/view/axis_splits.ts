/** Splits along the first, second and third axis, with NumPy's names. */
import { underName } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import { either, listOf, someNumber } from "../../core/kinds.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tensorSplit } from "./tensor_split.ts";

const splitting = {
  x: operand(aTensor),
  indicesOrSections: required(either(someNumber, listOf(someNumber, "a list of numbers"))),
} as const;

/**
 * Splits a tensor along its second axis, or a vector along its only axis, into views: a number of equal parts, or parts
 * that end at given indices.
 *
 * @param indicesOrSections the number of parts, or the indices at which to split
 * @returns the parts, with x's shape except along the axis
 *
 * @example
 * hsplit(tensor([[1, 2], [3, 4]]), 2); // [[1], [3]] and [[2], [4]]
 *
 * @throws {ShapeError} for a tensor without axes, or a size that the number of parts does not divide.
 * @throws {ArgumentError} for a number of parts below 1.
 */
export function hsplit<D extends DType>(x: Tensor<D>, indicesOrSections: number | readonly number[]): Tensor<D>[];
export function hsplit(...values: unknown[]): Tensor[] {
  const { x, indicesOrSections } = hsplitParameters(values);
  return partsAlong("hsplit", x, indicesOrSections, { axis: x.rank === 1 ? 0 : 1, least: 1 });
}
hsplit.method = "parts" as const;
const hsplitParameters = parameters("hsplit", splitting);

/**
 * Splits a tensor along its first axis; see {@link hsplit}.
 *
 * @returns the parts, with x's shape except along the axis
 *
 * @example
 * vsplit(tensor([[1, 2], [3, 4]]), 2); // [[1, 2]] and [[3, 4]]
 *
 * @throws {ShapeError} for fewer than two axes, or a size that the number of parts does not divide.
 * @throws {ArgumentError} for a number of parts below 1.
 */
export function vsplit<D extends DType>(x: Tensor<D>, indicesOrSections: number | readonly number[]): Tensor<D>[];
export function vsplit(...values: unknown[]): Tensor[] {
  const { x, indicesOrSections } = vsplitParameters(values);
  return partsAlong("vsplit", x, indicesOrSections, { axis: 0, least: 2 });
}
vsplit.method = "parts" as const;
const vsplitParameters = parameters("vsplit", splitting);

/**
 * Splits a tensor along its third axis; see {@link hsplit}.
 *
 * @returns the parts, with x's shape except along the axis
 *
 * @example
 * dsplit(tensor([[[1, 2]]]), 2); // [[[1]]] and [[[2]]]
 *
 * @throws {ShapeError} for fewer than three axes, or a size that the number of parts does not divide.
 * @throws {ArgumentError} for a number of parts below 1.
 */
export function dsplit<D extends DType>(x: Tensor<D>, indicesOrSections: number | readonly number[]): Tensor<D>[];
export function dsplit(...values: unknown[]): Tensor[] {
  const { x, indicesOrSections } = dsplitParameters(values);
  return partsAlong("dsplit", x, indicesOrSections, { axis: 2, least: 3 });
}
dsplit.method = "parts" as const;
const dsplitParameters = parameters("dsplit", splitting);

function partsAlong(
  operation: string,
  x: Tensor,
  parts: number | readonly number[],
  { axis, least }: { readonly axis: number; readonly least: number },
): Tensor[] {
  if (x.rank < least)
    throw new ShapeError(operation, "wrongRank", `expected at least ${least} axes, got ${x.describe()}`);
  if (typeof parts === "number" && x.shape[axis] % parts !== 0)
    throw new ShapeError(
      operation,
      "unevenParts",
      `expected axis ${axis} to be divisible into equal parts, got ${parts} for ${x.describe()}; use tensorSplit`,
    );
  return underName(operation, () => tensorSplit(x, parts, axis));
}
