import { ShapeError } from "../../core/errors.ts";
import { parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkRanks, checkSameDType, factors } from "./checks.ts";
import { product } from "./product.ts";
import { asColumns, asNumbers, asRows } from "./views.ts";

/**
 * Computes the dot product of two vectors, `Σₖ a[k] · b[k]`; 0 if they are empty.
 *
 * @param a [k]
 * @param b [k], of the same dtype
 * @returns a tensor without axes
 *
 * @example
 * dot(tensor([1, 2, 3]), tensor([4, 5, 6])).item(); // 32
 *
 * @throws {ShapeError} if an operand is not a vector, or lengths differ.
 * @throws {DTypeError} if dtypes differ, and for bool.
 */
export function dot<D extends DType>(a: Tensor<D>, b: Tensor<D>): Tensor<D>;
export function dot(...values: unknown[]): Tensor {
  const { a, b } = dotParameters(values);
  checkSameDType("dot", [a, b]);
  checkRanks("dot", 1, "vectors", [a, b]);
  if (a.shape[0] !== b.shape[0])
    throw new ShapeError(
      "dot",
      "shapesDiffer",
      `expected vectors of equal length, got ${a.describe()} and ${b.describe()}`,
    );
  return asNumbers(product(asRows(a), asColumns(b)));
}
dot.method = "same" as const;
const dotParameters = parameters("dot", factors);
