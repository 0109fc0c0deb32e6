import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { ShapeError } from "../../core/errors.ts";
import type { DType } from "../../tensor/dtype.ts";
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
  /** The diagonal that is kept last: 0 the main one, above it positive, below it negative. Default 0. */
  diagonal?: number;
}

/**
 * The lower triangle of the last two axes: what lies above the diagonal becomes 0, NaN and infinity too.
 *
 * @example
 * tril(tensor([[1, 2], [3, 4]])); // [[1, 0], [3, 4]]
 *
 * @throws {ShapeError} for a tensor with fewer than two axes.
 */
export const tril = <D extends DType>(x: Tensor<D>, { diagonal = 0 }: TriangleOptions = {}): Tensor<D> =>
  triangle("tril", x, { lower: true, diagonal });
tril.method = "same" as const;

/**
 * The upper triangle of the last two axes: what lies below the diagonal becomes 0, NaN and infinity too.
 *
 * @example
 * triu(tensor([[1, 2], [3, 4]]), { diagonal: 1 }); // [[0, 2], [0, 0]]
 *
 * @throws {ShapeError} for a tensor with fewer than two axes.
 */
export const triu = <D extends DType>(x: Tensor<D>, { diagonal = 0 }: TriangleOptions = {}): Tensor<D> =>
  triangle("triu", x, { lower: false, diagonal });
triu.method = "same" as const;

function triangle<D extends DType>(operation: string, x: Tensor<D>, attributes: TriangleAttributes): Tensor<D> {
  checkOffset(operation, attributes.diagonal);
  if (x.rank < 2)
    throw new ShapeError(operation, "wrongRank", `expected a matrix or a batch of matrices, got ${x.describe()}`);
  const output = execute(trianglePrimitive, [x], x.shape, x.dtype, attributes, operation);
  record(operation, [x], [output], [], ([gradient]) => [triangle(operation, gradient!, attributes)]);
  return output;
}
