import { underName } from "../../backend/dispatch.ts";
import { parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Promote } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { reshape } from "../view/reshape.ts";
import { checkRanks, factors } from "./checks.ts";
import { fusesKron, matrixKron } from "./kron.cpu.ts";

/**
 * Computes the outer product of two vectors: `out[i, j] = a[i] · b[j]`. Dtypes are promoted as by `mul`.
 *
 * @param a [m]
 * @param b [n]
 * @returns [m, n]
 *
 * @example
 * outer(tensor([1, 2]), tensor([1, 10])); // [[1, 10], [2, 20]]
 *
 * @throws {ShapeError} if an operand is not a vector.
 */
export function outer<A extends DType, B extends DType>(a: Tensor<A>, b: Tensor<B>): Tensor<Promote<A, B>>;
export function outer(...values: unknown[]): Tensor {
  const { a, b } = outerParameters(values);
  checkRanks("outer", 1, "vectors", [a, b]);
  if (fusesKron(a, b)) return matrixKron(a, b, [a.size, b.size], "outer");
  return underName("outer", () => mul(reshape(a, [a.shape[0], 1]), b));
}
outer.method = "promoted" as const;
const outerParameters = parameters("outer", factors);
