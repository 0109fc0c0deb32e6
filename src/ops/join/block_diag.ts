import { needsGradient, record } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { lastElement } from "../../core/collections.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { DType } from "../../tensor/dtype.ts";
import { tensorsInline } from "../../tensor/kinds.ts";
import { checkShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { copyInto } from "../copy/copy.ts";
import { filled } from "../view/embed.ts";
import { narrow } from "../view/slice.ts";
import { atleast2d } from "./stacks.ts";

/**
 * Builds a block-diagonal matrix: matrices along the diagonal, zeros elsewhere. A vector counts as one row, a tensor
 * without axes as one element.
 *
 * @param tensors of one dtype and at most two axes, in an array or one by one
 * @returns [Σ rows, Σ columns]
 *
 * @example
 * blockDiag(tensor([[1, 2]]), tensor([[3], [4]])); // float32 [[1, 2, 0], [0, 0, 3], [0, 0, 4]]
 *
 * @throws {ShapeError} for more than two axes, or an empty list.
 * @throws {DTypeError} if dtypes differ.
 */
export function blockDiag<D extends DType>(tensors: readonly Tensor<D>[]): Tensor<D>;
export function blockDiag<D extends DType>(...tensors: readonly Tensor<D>[]): Tensor<D>;
export function blockDiag(...values: unknown[]): Tensor {
  const { tensors } = blockDiagParameters(values);
  const [first] = tensors;
  if (!first) throw new ShapeError("blockDiag", "noTensors", "expected at least one tensor, got an empty list");
  for (const each of tensors) {
    if (each.rank > 2) throw new ShapeError("blockDiag", "wrongRank", `expected matrices, got ${each.describe()}`);
    if (each.dtype !== first.dtype)
      throw new DTypeError(
        "blockDiag",
        "dtypesDiffer",
        `expected tensors of one dtype, got ${first.describe()} and ${each.describe()}`,
      );
  }
  return underName("blockDiag", () => tidy(() => placed(tensors.map((each) => atleast2d(each)))));
}
const blockDiagParameters = parameters("blockDiag", { tensors: operand(tensorsInline) });

/** Returns zeros with the matrices along the diagonal. */
function placed(blocks: readonly Tensor[]): Tensor {
  const ends = (axis: 0 | 1): number[] => {
    let end = 0;
    return blocks.map((block) => (end += block.shape[axis]));
  };
  const [rows, columns] = [ends(0), ends(1)];
  const [{ dtype }] = tupleOf(blocks, 1);
  const output = filled(checkShape("blockDiag", [lastElement(rows), lastElement(columns)]), dtype, 0, "blockDiag");
  const shapes = blocks.map(({ shape }) => tupleOf(shape, 2));
  const [row, column] = tupleOf(output.strides, 2);
  for (const [at, block] of blocks.entries()) {
    const [height, width] = shapes[at];
    const offset = (rows[at] - height) * row + (columns[at] - width) * column;
    if (block.size > 0) copyInto(new Tensor(output.storage, dtype, block.shape, output.strides, offset), block);
  }
  if (!needsGradient(...blocks)) return output;
  const part = (whole: Tensor, at: number): Tensor => {
    const [height, width] = shapes[at];
    return narrow(narrow(whole, 0, rows[at] - height, height), 1, columns[at] - width, width);
  };
  record("blockDiag", blocks, [output], [], ([gradient], _saved, needs) =>
    shapes.map((_, at) => (needs[at] ? part(gradient, at) : null)),
  );
  return output;
}
