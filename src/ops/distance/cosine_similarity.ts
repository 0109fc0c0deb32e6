import { underName } from "../../backend/dispatch.ts";
import { aNumber, axis as axisKind } from "../../core/kinds.ts";
import { notNegative } from "../../core/options.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { div } from "../elementwise/division.ts";
import { promoteOperands } from "../elementwise/operands.ts";
import { norm } from "../reduction/norm.ts";
import { sum } from "../reduction/sum.ts";
import { expand } from "../view/expand.ts";
import { atLeast } from "./at_least.ts";
import { fusesRowPairs, rowPairs } from "./row_pairs.cpu.ts";
import { checkVectors } from "./vectors.ts";

/** Options of {@link cosineSimilarity}. */
export interface CosineSimilarityOptions {
  /** The axis of the vectors. Default 1. */
  dim?: number | undefined;
  /** Lower bound of the norms. Default 1e-8. */
  eps?: number | undefined;
}

/**
 * Computes the cosine of the angle between vectors along an axis: x1 · x2 / (max(‖x1‖, eps) max(‖x2‖, eps)).
 *
 * @param x1 floats, or numbers of any dtype if x2 is a float; shapes broadcast
 * @param x2 promoted with x1 to one dtype
 * @returns the common shape without the axis, in that dtype
 *
 * @example
 * cosineSimilarity(tensor([[1, 0], [1, 1]]), tensor([[2, 0], [1, -1]])); // float32 [1, 0]
 *
 * @throws {ShapeError} if shapes can't be broadcast or the axis is out of range. @throws {DTypeError} if
 * neither is a float. @throws {ArgumentError} for a negative eps.
 */
export function cosineSimilarity<D extends DType, E extends DType>(
  x1: Tensor<D>,
  x2: Tensor<E>,
  ...options: Given<CosineSimilarityOptions, ["dim", "eps"]>
): Tensor<Promote<D, E>>;
export function cosineSimilarity(...values: unknown[]): Tensor {
  const { dim, eps, ...given } = cosineSimilarityParameters(values);
  const [x1, x2] = promoteOperands("cosineSimilarity", [given.x1, given.x2]);
  const shape = checkVectors("cosineSimilarity", x1, x2);
  const axis = normalizeAxis("cosineSimilarity", dim, shape.length);
  return underName("cosineSimilarity", () =>
    tidy(() => {
      if (fusesRowPairs(shape, axis, x1, x2)) {
        const cosines = rowPairs("cosineSimilarity", "similarity", { a: x1, b: x2, shape, axis }, { eps });
        return toDType(cosines, x1.dtype);
      }
      const [a, b] = [x1, x2].map((each) => {
        const wide = expand(toDType(each, accumulationDType(each.dtype)), shape);
        return div(wide, atLeast(norm(wide, { dim: axis, keepdim: true }), eps));
      });
      return toDType(sum(mul(a, b), { dim: axis }), x1.dtype);
    }),
  );
}
const cosineSimilarityParameters = parameters("cosineSimilarity", {
  x1: operand(aTensor),
  x2: operand(aTensor),
  dim: optional(axisKind, 1),
  eps: optional(aNumber(notNegative), 1e-8),
});
