import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { ShapeError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkOffset } from "../view/diagonal.ts";
import type { TriangleAttributes } from "./primitive.ts";
import { triangleCpu } from "./triangle.cpu.ts";
import { triangleMetal } from "./triangle.metal.ts";
import { triangleReference } from "./triangle.reference.ts";

const trianglePrimitive = definePrimitive<TriangleAttributes>({
  name: "triangle",
  family: "indexing",
  implementations: { metal: triangleMetal, cpu: triangleCpu, reference: triangleReference },
});

/** Options of {@link tril} and {@link triu}. */
export interface TriangleOptions {
  /**
   * The diagonal at the edge of the triangle, included: 0 is the main diagonal, positive values are above it, negative
   * below. Default 0.
   */
  diagonal?: number;
}

const triangular = { x: operand(aTensor), diagonal: optional(someNumber, 0) } as const;

/**
 * Returns the lower triangle of the last two axes: elements above the diagonal become 0, including NaN and infinity.
 *
 * @example
 * tril(tensor([[1, 2], [3, 4]])); // [[1, 0], [3, 4]]
 *
 * @throws {ShapeError} for a tensor with fewer than two axes.
 */
export function tril<D extends DType>(x: Tensor<D>, ...options: Given<TriangleOptions, ["diagonal"]>): Tensor<D>;
export function tril(...values: unknown[]): Tensor {
  const { x, diagonal } = trilParameters(values);
  return triangle("tril", x, { lower: true, diagonal });
}
const trilParameters = parameters("tril", triangular);
tril.method = "same" as const;

/**
 * Returns the upper triangle of the last two axes: elements below the diagonal become 0, including NaN and infinity.
 *
 * @example
 * triu(tensor([[1, 2], [3, 4]]), 1); // [[0, 2], [0, 0]]
 *
 * @throws {ShapeError} for a tensor with fewer than two axes.
 */
export function triu<D extends DType>(x: Tensor<D>, ...options: Given<TriangleOptions, ["diagonal"]>): Tensor<D>;
export function triu(...values: unknown[]): Tensor {
  const { x, diagonal } = triuParameters(values);
  return triangle("triu", x, { lower: false, diagonal });
}
const triuParameters = parameters("triu", triangular);
triu.method = "same" as const;

function triangle<D extends DType>(operation: string, x: Tensor<D>, attributes: TriangleAttributes): Tensor<D> {
  checkOffset(operation, attributes.diagonal);
  if (x.rank < 2)
    throw new ShapeError(operation, "wrongRank", `expected a matrix or a batch of matrices, got ${x.describe()}`);
  const output = execute(trianglePrimitive, [x], x.shape, x.dtype, attributes, operation);
  record(operation, [x], [output], [], ([gradient]) => [triangle(operation, gradient, attributes)]);
  return output;
}
