import { lastElement } from "../../core/collections.ts";
import { ShapeError } from "../../core/errors.ts";
import { axis, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { checkShape, normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkOffset, type DiagonalOptions, diagonal } from "../view/diagonal.ts";
import { embed } from "../view/embed.ts";

/**
 * Builds square matrices with the last axis of x on a diagonal, and zeros elsewhere. {@link diagonal} is the inverse.
 *
 * @param options the diagonal, and the positions of the two axes in the result. Default: 0, −2 and −1
 *
 * @example
 * diagEmbed(tensor([1, 2])); // float32 [[1, 0], [0, 2]]
 *
 * @throws {ShapeError} for an axis out of range, the same axis twice, or an x without axes.
 */
export function diagEmbed<D extends DType>(
  x: Tensor<D>,
  ...options: Given<DiagonalOptions, ["offset", "dim1", "dim2"]>
): Tensor<D>;
export function diagEmbed(...values: unknown[]): Tensor {
  const { x, offset, dim1, dim2 } = diagEmbedParameters(values);
  if (x.rank === 0)
    throw new ShapeError("diagEmbed", "wrongRank", `expected a tensor of at least rank 1, got ${x.describe()}`);
  const rank = x.rank + 1;
  const row = normalizeAxis("diagEmbed", dim1, rank, "dim1");
  const column = normalizeAxis("diagEmbed", dim2, rank, "dim2");
  if (row === column)
    throw new ShapeError("diagEmbed", "axisTwice", `expected two axes, got dim1 ${dim1} and dim2 ${dim2}`);
  checkOffset("diagEmbed", offset);
  const size = lastElement(x.shape) + Math.abs(offset);
  const others = x.shape.slice(0, -1).values();
  const shape = Array.from({ length: rank }, (_, at) => (at === row || at === column ? size : others.next().value!));
  return embed(
    x,
    checkShape("diagEmbed", shape),
    (whole) => diagonal(whole, { offset, dim1: row, dim2: column }),
    "diagEmbed",
  );
}
diagEmbed.method = "same" as const;
const diagEmbedParameters = parameters("diagEmbed", {
  x: operand(aTensor),
  offset: optional(someNumber, 0),
  dim1: optional(axis, -2),
  dim2: optional(axis, -1),
});
