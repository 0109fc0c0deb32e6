import { underName } from "../../backend/dispatch.ts";
import { aNumber, flag } from "../../core/kinds.ts";
import { finite } from "../../core/options.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { computationDType, type DType, hasGradients, realDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import { broadcastShapes, elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add, sub } from "../elementwise/arithmetic.ts";
import { checkNoBools, promoteOperands } from "../elementwise/operands.ts";
import type { FloatOf } from "../elementwise/types.ts";
import { norm } from "../reduction/norm.ts";
import { reshape } from "../view/reshape.ts";
import { fusesRowPairs, rowPairs } from "./row_pairs.cpu.ts";
import { checkVectors } from "./vectors.ts";

/** Options of {@link pairwiseDistance}. */
export interface PairwiseDistanceOptions {
  /** The order of the norm: any number, ±Infinity included. Default 2. */
  p?: number | undefined;
  /** Added to each difference. Default 1e-6. */
  eps?: number | undefined;
  /** Whether to keep the last axis, with size 1. Default false. */
  keepdim?: boolean | undefined;
}

/**
 * Computes the distance between corresponding vectors: ‖x1 − x2 + eps‖ₚ along the last axis. `cdist` computes the
 * distances of all pairs.
 *
 * @param x1 […, coordinates], of a numeric dtype; shapes broadcast
 * @param x2 promoted with x1 to one dtype
 * @returns the common shape without its last axis, in that dtype, or float32 for integers
 *
 * @example
 * pairwiseDistance(tensor([[0, 0], [1, 1]]), tensor([[3, 4], [1, 1]]), { eps: 0 }); // float32 [5, 0]
 *
 * @throws {ShapeError} if shapes can't be broadcast, or have no axis. @throws {DTypeError} for bools.
 * @throws {ArgumentError} if p is NaN.
 */
export function pairwiseDistance<D extends DType, E extends DType>(
  x1: Tensor<D>,
  x2: Tensor<E>,
  ...options: Given<PairwiseDistanceOptions, ["p", "eps", "keepdim"]>
): Tensor<FloatOf<Promote<D, E>>>;
export function pairwiseDistance(...values: unknown[]): Tensor {
  const { p, eps, keepdim, ...given } = pairwiseDistanceParameters(values);
  checkNoBools("pairwiseDistance", { x1: given.x1, x2: given.x2 });
  const [x1, x2] = promoteOperands("pairwiseDistance", [given.x1, given.x2], "numbers");
  checkVectors("pairwiseDistance", x1, x2, { takesIntegers: true });
  return underName("pairwiseDistance", () => tidy(() => distanceOf(x1, x2, { p, eps, keepdim })));
}
const pairwiseDistanceParameters = parameters("pairwiseDistance", {
  x1: operand(aTensor),
  x2: operand(aTensor),
  p: optional(aNumber({ holds: (p) => !Number.isNaN(p), expected: "a number, ±Infinity included" }), 2),
  eps: optional(aNumber(finite), 1e-6),
  keepdim: optional(flag, false),
});

/** For more elements in shorter vectors, the composition is faster: its sums take many rows at a time. */
const [SHORT, MANY] = [64, 1 << 14];

/** @internal Computes {@link pairwiseDistance} of checked operands. */
export function distanceOf(
  x1: Tensor,
  x2: Tensor,
  { p, eps, keepdim = false }: { readonly p: number; readonly eps: number; readonly keepdim?: boolean },
): Tensor {
  const shape = broadcastShapes("pairwiseDistance", x1.shape, x2.shape);
  const axis = shape.length - 1;
  const isFused = p === 2 && axis >= 0 && !(shape[axis] < SHORT && elementCount(shape) > MANY);
  if (isFused && fusesRowPairs(shape, axis, x1, x2)) {
    const distances = rowPairs("pairwiseDistance", "distance", { a: x1, b: x2, shape, axis }, { eps });
    return toDType(keepdim ? reshape(distances, shape.with(axis, 1)) : distances, x1.dtype);
  }
  const [a, b] = [x1, x2].map((each) =>
    hasGradients(each.dtype) ? toDType(each, computationDType(each.dtype)) : each,
  );
  const dtype = hasGradients(x1.dtype) ? x1.dtype : "float32"; // integer differences wrap around first, as in PyTorch
  const difference = toDType(sub(a, b), computationDType(dtype));
  return toDType(norm(add(difference, eps), { p, dim: -1, keepdim }), realDType(dtype));
}
