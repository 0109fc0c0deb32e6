import { ArgumentError } from "../../core/errors.ts";
import { type AxisArguments, axis as axisKind, either, listOf, someNumber } from "../../core/kinds.ts";
import { type Kind, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { axisOf, slice } from "./slice.ts";
import type { SplitOptions } from "./split.ts";

/**
 * Splits an axis into views: a given number of parts, of which the first ones are longer by 1 if the size is not
 * divisible; or parts that end at given indices, which may be out of range.
 *
 * @param indicesOrSections the number of parts, or the indices at which to split, in a list or an integer vector, which
 * is read on the host
 * @returns the parts, with x's shape except along the axis
 *
 * @example
 * tensorSplit(tensor([1, 2, 3, 4, 5]), 2); // [1, 2, 3] and [4, 5]
 * tensorSplit(tensor([1, 2, 3, 4, 5]), [1, 3]); // [1], [2, 3] and [4, 5]
 *
 * @throws {ShapeError} for an axis out of range.
 * @throws {ArgumentError} for a number of parts below 1.
 */
export function tensorSplit<D extends DType>(
  x: Tensor<D>,
  indicesOrSections: number | readonly number[] | Tensor,
  ...options: AxisArguments<SplitOptions>
): Tensor<D>[];
export function tensorSplit(...values: unknown[]): Tensor[] {
  const { x, indicesOrSections, dim } = tensorSplitParameters(values);
  const axis = axisOf("tensorSplit", x, dim);
  const ends = typeof indicesOrSections === "number" ? evenEnds(x.shape[axis], indicesOrSections) : indicesOrSections;
  for (const end of ends)
    if (!Number.isInteger(end))
      throw new ArgumentError("tensorSplit", "invalidIndex", `expected an index to be a whole number, got ${end}`);
  const bounds = [0, ...ends, x.shape[axis]];
  return bounds.slice(1).map((end, at) => slice(x, { dim: axis, start: bounds[at], end }));
}
tensorSplit.method = "parts" as const;
/** Reads the elements of a vector. */
const vector: Kind<number[]> = {
  expected: "a vector",
  parse(value, operation, name) {
    const tensor = aTensor.parse(value, operation, name);
    return tensor?.rank === 1 ? Array.from(tensor.dataSync(), Number) : undefined;
  },
};
const tensorSplitParameters = parameters("tensorSplit", {
  x: operand(aTensor),
  indicesOrSections: required(either(someNumber, listOf(someNumber, "a list of numbers"), vector)),
  dim: optional(axisKind, 0),
});

/** Maximum number of parts. A larger number is a mistake, and would create views until memory runs out. */
const MOST_PARTS = 65_536;

/** Returns the ends of all parts except the last. */
function evenEnds(size: number, parts: number): number[] {
  if (!Number.isInteger(parts) || parts < 1 || parts > MOST_PARTS)
    throw new ArgumentError(
      "tensorSplit",
      "invalidCount",
      `expected a number of parts from 1 to ${MOST_PARTS}, got ${parts}`,
    );
  const [short, longer] = [Math.floor(size / parts), size % parts];
  return Array.from({ length: parts - 1 }, (_, at) => (at + 1) * short + Math.min(at + 1, longer));
}
