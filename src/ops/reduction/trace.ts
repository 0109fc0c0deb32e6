import { ShapeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { diagonal } from "../view/diagonal.ts";
import { type SumOf, sum } from "./sum.ts";

/**
 * Computes the sum of the main diagonal of a matrix. Integers and bools are added in int64, which wraps around.
 *
 * @param x [m, n]
 * @returns a tensor without axes
 *
 * @example
 * trace(tensor([[1, 2], [3, 4]])); // float32 5
 *
 * @throws {ShapeError} if x is not a matrix. For a batch, use `sum(linalg.diagonal(x), { dim: -1 })`.
 */
export function trace<D extends DType>(x: Tensor<D>): Tensor<SumOf<D>>;
export function trace(...values: unknown[]): Tensor {
  const { x } = traceParameters(values);
  if (x.rank !== 2)
    throw new ShapeError(
      "trace",
      "wrongRank",
      `expected a matrix, got ${x.describe()}; for a batch, use sum(linalg.diagonal(x), { dim: -1 })`,
    );
  return sum(diagonal(x));
}
trace.method = "declared" as const;
const traceParameters = parameters("trace", { x: operand(aTensor) });
