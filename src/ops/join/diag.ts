import { ShapeError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkOffset, diagonal } from "../view/diagonal.ts";
import { embed } from "../view/embed.ts";

/** Options of {@link diag}. */
export interface DiagOptions {
  /** The diagonal: 0 is the main diagonal, positive values are above it, negative below. Default 0. */
  diagonal?: number;
}

/**
 * Builds a square matrix with a vector on a diagonal and zeros elsewhere; for a matrix, returns a view of a diagonal.
 *
 * @returns for a vector [n], a matrix [n + |diagonal|, n + |diagonal|]; for a matrix, a vector
 *
 * @example
 * diag(tensor([1, 2])); // [[1, 0], [0, 2]]
 * diag(tensor([[1, 2], [3, 4]]), 1); // [2]
 *
 * @throws {ShapeError} for a tensor that is neither vector nor matrix.
 */
export function diag<D extends DType>(x: Tensor<D>, ...options: Given<DiagOptions, ["diagonal"]>): Tensor<D>;
export function diag(...values: unknown[]): Tensor {
  const { x, diagonal: offset } = diagParameters(values);
  checkOffset("diag", offset);
  if (x.rank === 2) return diagonal(x, { offset });
  if (x.rank !== 1) throw new ShapeError("diag", "wrongRank", `expected a vector or a matrix, got ${x.describe()}`);
  const size = x.shape[0] + Math.abs(offset);
  return embed(x, [size, size], (whole) => diagonal(whole, { offset }), "diag");
}
diag.method = "same" as const;
const diagParameters = parameters("diag", { x: operand(aTensor), diagonal: optional(someNumber, 0) });
