import { lastElement } from "../../core/collections.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { checkSameDType } from "../../ops/matmul/checks.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { reshape } from "../../ops/view/reshape.ts";
import type { DType } from "../../tensor/dtype.ts";
import { tensorList } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/**
 * Computes the product of two or more matrices, in the order that takes the fewest multiplications. The first one may
 * be a vector, treated as a row, and the last one a vector, treated as a column; the result then lacks that axis.
 *
 * @param tensors [m, k₁], [k₁, k₂], …, [kᵣ, n], of one dtype
 * @returns [m, n], without m if the first is a vector, without n if the last is one
 *
 * @example
 * linalg.multiDot([tensor([1, 2]), tensor([[1, 0], [0, 3]]), tensor([1, 1])]); // float32 7
 *
 * @throws {ArgumentError} for fewer than two tensors. @throws {ShapeError} if shapes do not match.
 * @throws {DTypeError} if dtypes differ, and for bool.
 */
export function multiDot<D extends DType>(tensors: readonly Tensor<D>[]): Tensor<D>;
export function multiDot(...values: unknown[]): Tensor {
  const { tensors } = multiDotParameters(values);
  if (tensors.length < 2)
    throw new ArgumentError("multiDot", "tooFewTensors", `expected at least two tensors, got ${tensors.length}`);
  checkSameDType("multiDot", tensors);
  const [first, last] = [tensors[0], lastElement(tensors)];
  const matrices = tensors.map((tensor, at) => asMatrix(tensor, at, tensors.length));
  checkInnerSizes(matrices);
  const result = multiplied(matrices, bestSplits(sizesOf(matrices)), 0, matrices.length - 1);
  return reshape(result, [...first.shape.slice(0, -1), ...(last.rank === 1 ? [] : [last.shape[1]])]);
}
const multiDotParameters = parameters("multiDot", { tensors: operand(tensorList) });

function asMatrix(x: Tensor, at: number, count: number): Tensor {
  if (x.rank === 2) return x;
  if (x.rank === 1 && at === 0) return reshape(x, [1, x.size]);
  if (x.rank === 1 && at === count - 1) return reshape(x, [x.size, 1]);
  const expected = at === 0 || at === count - 1 ? "a vector or a matrix" : "a matrix";
  throw new ShapeError("multiDot", "wrongRank", `expected tensor ${at} to be ${expected}, got ${x.describe()}`);
}

function checkInnerSizes(matrices: readonly Tensor[]): void {
  for (const [at, right] of matrices.entries()) {
    const left = matrices[at - 1];
    if (left && left.shape[1] !== right.shape[0])
      throw new ShapeError(
        "multiDot",
        "shapesDiffer",
        `expected tensor ${at} with ${left.shape[1]} rows after ${left.describe()}, got ${right.describe()}`,
      );
  }
}

/** The rows of the first matrix, then the columns of each. */
const sizesOf = (matrices: readonly Tensor[]): number[] => [
  matrices[0].shape[0],
  ...matrices.map(({ shape }) => shape[1]),
];

/**
 * @internal Finds, for each run of matrices from i to j, the cheapest place to split it in two, by dynamic programming.
 * Source: Cormen, Leiserson, Rivest and Stein, "Introduction to Algorithms", section "Matrix-chain multiplication".
 */
export function bestSplits(sizes: readonly number[]): number[][] {
  const count = sizes.length - 1;
  const costs = Array.from({ length: count }, () => new Array<number>(count).fill(0));
  const splits = Array.from({ length: count }, () => new Array<number>(count).fill(0));
  for (let length = 2; length <= count; length++)
    for (let i = 0; i + length <= count; i++) {
      const j = i + length - 1;
      costs[i][j] = Number.POSITIVE_INFINITY;
      for (let cut = i; cut < j; cut++) {
        const cost = costs[i][cut] + costs[cut + 1][j] + sizes[i] * sizes[cut + 1] * sizes[j + 1];
        if (cost < costs[i][j]) [costs[i][j], splits[i][j]] = [cost, cut];
      }
    }
  return splits;
}

function multiplied(matrices: readonly Tensor[], splits: readonly number[][], i: number, j: number): Tensor {
  if (i === j) return matrices[i];
  const cut = splits[i][j];
  return matmul(multiplied(matrices, splits, i, cut), multiplied(matrices, splits, cut + 1, j));
}
