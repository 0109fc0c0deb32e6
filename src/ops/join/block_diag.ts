import { underName } from "../../backend/dispatch.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { tensorsInline } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { cat } from "./cat.ts";
import { pad } from "./pad.ts";
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
  return underName("blockDiag", () => tidy(() => cat(rowsOf(tensors.map((each) => atleast2d(each))), 0)));
}
const blockDiagParameters = parameters("blockDiag", { tensors: operand(tensorsInline) });

/** Pads each block with zeros on the left and right. */
function rowsOf(blocks: readonly Tensor[]): [Tensor, ...Tensor[]] {
  const width = blocks.reduce((sum, block) => sum + block.shape[1]!, 0);
  let before = 0;
  return blocks.map((block) => {
    const start = before;
    before += block.shape[1]!;
    return pad(block, [start, width - before]);
  }) as [Tensor, ...Tensor[]];
}
