import { ShapeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { diagonal } from "../view/diagonal.ts";
import { type SumOf, sum } from "./sum.ts";

/**
 * The sum of the main diagonal of a matrix; integers and bools add up in int64, which wraps around.
 *
 * @param x [m, n]
 * @returns without axes
 *
 * @example
 * trace(tensor([[1, 2], [3, 4]])); // float32 5
 *
 * @throws {ShapeError} where x is no matrix; of a batch, `sum(linalg.diagonal(x), { dim: -1 })` is the trace.
 */
export function trace<D extends DType>(x: Tensor<D>): Tensor<SumOf<D>>;
export function trace(...values: unknown[]): Tensor {
  const { x } = traceParameters(values);
  if (x.rank !== 2)
    throw new ShapeError(
      "trace",
      "wrongRank",
      `expected a matrix, got ${x.describe()}; of a batch, sum(linalg.diagonal(x), { dim: -1 }) is the trace`,
    );
  return sum(diagonal(x));
}
trace.method = "own" as const;
const traceParameters = parameters("trace", { x: operand(aTensor) });
