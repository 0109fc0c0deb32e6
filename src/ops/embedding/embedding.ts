import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { lastElement } from "../../core/collections.ts";
import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { checkRank } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";
import { gatherPrimitive } from "../indexing/adjoint.ts";
import { checkSomethingToName, type IndexDType } from "../indexing/indices.ts";
import { reshape } from "../view/reshape.ts";
import { tableGradient } from "./bags.ts";
import { checkTable, paddingRow, wholeIndices } from "./rows.ts";

/** Options of {@link embedding}. */
export interface EmbeddingOptions {
  /** A row that gets no gradient. Negative values count from the end. */
  paddingIndex?: number | undefined;
}

/**
 * Looks up rows of a table: `result[…, :] = weight[indices[…], :]`. The gradient of a row is summed over its indices in
 * their order, so every run gives the same bits. PyTorch's `embedding`; `paddingIndex` is its `padding_idx`.
 *
 * @param indices integers of any shape
 * @param weight [rows, width], floats
 * @returns [...indices' shape, width], in weight's dtype
 *
 * @example
 * embedding(tensor([1n, 0n]), tensor([[1, 2], [3, 4]])); // float32 [[3, 4], [1, 2]]
 *
 * @throws {ShapeError} for a weight that is not a matrix, and `indexOutOfRange` if an index is negative or too large
 * (on Metal when a result is read).
 * @throws {DTypeError} for indices that are not integers, or a weight that is not floating-point.
 * @throws {ArgumentError} for a padding index out of range.
 */
export function embedding<D extends DType>(
  indices: Tensor,
  weight: Tensor<D>,
  ...options: Given<EmbeddingOptions, ["paddingIndex"]>
): Tensor<D>;
export function embedding(...values: unknown[]): Tensor {
  const { indices, weight, paddingIndex } = embeddingParameters(values);
  checkTable("embedding", weight);
  const index = wholeIndices("embedding", "indices", indices);
  const padding = paddingRow("embedding", weight, paddingIndex);
  checkRank("embedding", [...index.shape, weight.shape[1]]);
  checkSomethingToName("embedding", index, weight.shape[0]);
  const output = rowsOf(index, weight);
  const rows = weight.shape[0];
  record("embedding", [weight], [output], [index], ([gradient], [saved]) => [rowSums(gradient, saved, rows, padding)]);
  return output;
}
const embeddingParameters = parameters("embedding", {
  indices: operand(aTensor),
  weight: operand(aTensor),
  paddingIndex: optional(someNumber),
});

/**
 * Looks up rows with one gather. The table is expanded along all but the last axis of the indices, and the indices
 * along the width, both without copying.
 */
function rowsOf<D extends DType>(index: Tensor<IndexDType>, weight: Tensor<D>): Tensor<D> {
  const [rows, width] = tupleOf(weight.shape, 2);
  const lead = index.shape.slice(0, -1);
  const dim = lead.length;
  const layout = index.rank === 0 ? { shape: [1], strides: [0] } : index;
  const shape = [...layout.shape, width];
  using along = new Tensor(index.storage, index.dtype, shape, [...layout.strides, 0], index.offset);
  using table = new Tensor(
    weight.storage,
    weight.dtype,
    [...lead, rows, width],
    [...lead.map(() => 0), ...weight.strides],
    weight.offset,
  );
  const attributes = { operation: "embedding", dim, axes: index.shape.map((_, axis) => axis) };
  const output = execute(gatherPrimitive, [table, along], shape, weight.dtype, attributes, "embedding");
  return index.rank === 0 ? reshape(output, [width]) : output;
}

/** Sums the gradients of all indices by row: the gradient of bags with one index each. */
function rowSums(gradient: Tensor, index: Tensor<IndexDType>, rows: number, padding: number | undefined): Tensor {
  const indices = noGrad(() => reshape(contiguous(index), [index.size]));
  const attributes = {
    mode: "sum",
    bags: index.size,
    length: 1,
    rows,
    padding: padding ?? -1,
    hasFactors: false,
  } as const;
  const bags = { operation: "embedding", indices, offsets: indices, attributes };
  return tableGradient(reshape(gradient, [index.size, lastElement(gradient.shape)]), undefined, [indices], bags);
}
