/** Losses that pull pairs of vectors together or push them apart. */
import { ShapeError } from "../../core/errors.ts";
import { aFunction, aNumber, flag, someNumber } from "../../core/kinds.ts";
import { finite } from "../../core/options.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import { broadcastShapes, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { relu } from "../activation/relu.ts";
import { toDType } from "../copy/cast.ts";
import { distanceOf, pairwiseDistance } from "../distance/pairwise_distance.ts";
import { fusesRowPairs, rowPairs } from "../distance/row_pairs.cpu.ts";
import { checkVectors } from "../distance/vectors.ts";
import { add, mul, square, sub } from "../elementwise/arithmetic.ts";
import { eq } from "../elementwise/comparison.ts";
import { div } from "../elementwise/division.ts";
import { minimum } from "../elementwise/extrema.ts";
import { checkNoBools, promoteOperands } from "../elementwise/operands.ts";
import { sqrt } from "../elementwise/power.ts";
import { where } from "../elementwise/where.ts";
import { sum } from "../reduction/sum.ts";
import { checkBroadcast, composedLoss, plainLoss } from "./composed_loss.ts";
import type { MarginLossOptions } from "./margin_losses.ts";
import { asFloat, reductionParameter } from "./options.ts";

/** Added to the squared norms of the cosine. */
const COSINE_EPS = 1e-12;

/**
 * Computes 1 − c for a target of 1 and max(c − margin, 0) for −1, averaged over the batch; c is the cosine of the angle
 * between two vectors.
 *
 * @param x1 [width] or [batch, width]; integers become float32
 * @param x2 of x1's shape, promoted with x1 to one dtype
 * @param target 1 or −1, of any dtype: a scalar tensor, or [batch]
 * @param options the default margin is 0
 * @returns a scalar tensor, or one of the target's shape with `reduction: "none"`, in that dtype
 *
 * @example
 * const [a, b] = [tensor([[1, 0], [1, 0]]), tensor([[0, 2], [3, 0]])];
 * cosineEmbeddingLoss(a, b, tensor([1, -1]), { reduction: "none" }); // float32 [1, 1]
 *
 * @throws {ShapeError} if shapes do not match. @throws {ArgumentError} for an unknown reduction.
 */
export function cosineEmbeddingLoss<D extends DType, E extends DType>(
  x1: Tensor<D>,
  x2: Tensor<E>,
  target: Tensor,
  options?: MarginLossOptions,
): Tensor<Promote<D, E>>;
export function cosineEmbeddingLoss(...values: unknown[]): Tensor {
  const { target: given, margin, reduction, ...vectors } = cosineParameters(values);
  const [x1, x2] = tupleOf(promoteOperands("cosineEmbeddingLoss", [vectors.x1, vectors.x2].map(asFloat)), 2);
  checkBroadcast("cosineEmbeddingLoss", { x1, x2 });
  const target = toDType(given, x1.dtype);
  const shape = checkVectors("cosineEmbeddingLoss", x1, x2);
  if (shape.length > 2 || target.rank !== shape.length - 1)
    throw new ShapeError(
      "cosineEmbeddingLoss",
      "wrongRank",
      `expected [width] with a scalar target, or [batch, width] with a target [batch], got ${x1.describe()}, ` +
        `${x2.describe()} and ${target.describe()}`,
    );
  broadcastShapes("cosineEmbeddingLoss", shape.slice(0, -1), target.shape);
  const axis = shape.length - 1;
  const isFused = sameShape(target.shape, shape.slice(0, -1)) && fusesRowPairs(shape, axis, x1, x2, target);
  return composedLoss({ operation: "cosineEmbeddingLoss", reduction }, [x1, x2, target], (a, b, t) => {
    if (isFused)
      return rowPairs(
        "cosineEmbeddingLoss",
        "embedding",
        { a, b, shape, axis },
        { eps: COSINE_EPS, margin, target: t },
      );
    const product = (left: Tensor, right: Tensor): Tensor => sum(mul(left, right), { dim: -1 });
    const [ofA, ofB] = [a, b].map((each) => add(sum(square(each), { dim: -1 }), COSINE_EPS));
    const cosine = div(product(a, b), sqrt(mul(ofA, ofB)));
    const near = where(eq(t, 1), sub(1, cosine), 0);
    return add(near, where(eq(t, -1), relu(sub(cosine, margin)), 0));
  });
}
const cosineParameters = parameters("cosineEmbeddingLoss", {
  x1: operand(aTensor),
  x2: operand(aTensor),
  target: operand(aTensor),
  margin: named(someNumber, 0),
  reduction: reductionParameter,
});

/** Options of {@link tripletMarginLoss}. */
export interface TripletMarginLossOptions extends MarginLossOptions {
  /** The order of the norm. Default 2. */
  p?: number | undefined;
  /** Added to each difference. Default 1e-6. */
  eps?: number | undefined;
  /** Whether to use the distance from positive to negative instead if that is smaller. Default false. */
  swap?: boolean | undefined;
}

/**
 * Computes max(‖a − p‖ − ‖a − n‖ + margin, 0), averaged over the batch: the anchor a must be closer to the positive p
 * than to the negative n by the margin. Distances match `pairwiseDistance`.
 *
 * Source: V. Balntas et al., "Learning Local Feature Descriptors with Triplets and Shallow Convolutional Neural
 * Networks", 2016, which also describes the swap.
 *
 * @param anchor […, width], floats or integers; distances of integers are float32; shapes broadcast
 * @param positive promoted with the anchor to one dtype
 * @param negative promoted with the anchor to one dtype
 * @param options the default margin is 1
 * @returns a scalar tensor, or one of the common shape without its last axis with `reduction: "none"`
 *
 * @example
 * tripletMarginLoss(tensor([[0, 0]]), tensor([[3, 4]]), tensor([[0, 2]])); // float32 4
 *
 * @throws {ShapeError} if shapes can't be broadcast. @throws {DTypeError} for bools. @throws {ArgumentError} for
 * an unknown reduction.
 */
export function tripletMarginLoss<D extends DType, E extends DType, F extends DType>(
  anchor: Tensor<D>,
  positive: Tensor<E>,
  negative: Tensor<F>,
  options?: TripletMarginLossOptions,
): Tensor<Promote<Promote<D, E>, F>>;
export function tripletMarginLoss(...values: unknown[]): Tensor {
  const { margin, p, eps, swap, reduction, ...given } = tripletParameters(values);
  const { anchor, positive, negative } = given;
  const operation = "tripletMarginLoss";
  const vectors = [anchor, positive, negative] as const;
  checkNoBools(operation, given);
  if (!isFloat(anchor.dtype) || vectors.some(({ dtype }) => dtype !== anchor.dtype)) {
    const apart = (left: Tensor, right: Tensor): Tensor => pairwiseDistance(left, right, { p, eps });
    return plainLoss({ operation, reduction }, vectors, (a, near, far) =>
      tripletLoss(a, near, far, { distance: apart, margin, swap }),
    );
  }
  checkBroadcast("tripletMarginLoss", { anchor, positive, negative });
  checkVectors("tripletMarginLoss", anchor, positive);
  const distance = (left: Tensor, right: Tensor): Tensor => distanceOf(left, right, { p, eps });
  return composedLoss({ operation: "tripletMarginLoss", reduction }, vectors, (a, near, far) =>
    tripletLoss(a, near, far, { distance, margin, swap }),
  );
}
const tripletParameters = parameters("tripletMarginLoss", {
  anchor: operand(aTensor),
  positive: operand(aTensor),
  negative: operand(aTensor),
  margin: named(someNumber, 1),
  p: named(aNumber({ holds: (value) => !Number.isNaN(value), expected: "a number, ±Infinity included" }), 2),
  eps: named(aNumber(finite), 1e-6),
  swap: named(flag, false),
  reduction: reductionParameter,
});

/** Options of {@link tripletMarginWithDistanceLoss}. */
export interface TripletMarginWithDistanceLossOptions extends MarginLossOptions {
  /** Computes the distances of vectors along the last axis. Default: `pairwiseDistance`. */
  distanceFunction?: ((a: Tensor, b: Tensor) => Tensor) | undefined;
  /** Whether to use the distance from positive to negative instead if that is smaller. Default false. */
  swap?: boolean | undefined;
}

/**
 * Computes {@link tripletMarginLoss} with a custom distance function.
 *
 * @param anchor […, width], floats; shapes broadcast
 * @param positive of the anchor's dtype
 * @param negative of the anchor's dtype
 * @param options the default margin is 1
 * @returns a scalar tensor, or one of the distances' shape with `reduction: "none"`
 *
 * @example
 * const cityBlock = (a, b) => sum(abs(sub(a, b)), -1);
 * tripletMarginWithDistanceLoss(tensor([[0, 0]]), tensor([[3, 4]]), tensor([[0, 2]]), { distanceFunction: cityBlock });
 *
 * @throws {ShapeError} if shapes can't be broadcast. @throws {DTypeError} if dtypes differ or are not floats.
 * @throws {ArgumentError} for an unknown reduction.
 */
export function tripletMarginWithDistanceLoss<D extends DType>(
  anchor: Tensor<D>,
  positive: Tensor<D>,
  negative: Tensor<D>,
  options?: TripletMarginWithDistanceLossOptions,
): Tensor<D>;
export function tripletMarginWithDistanceLoss(...values: unknown[]): Tensor {
  const { anchor, positive, negative, distanceFunction, margin, swap, reduction } = tripletByParameters(values);
  const operation = "tripletMarginWithDistanceLoss";
  checkBroadcast(operation, { anchor, positive, negative });
  checkVectors(operation, anchor, positive);
  const distance = distanceFunction ?? ((a: Tensor, b: Tensor): Tensor => pairwiseDistance(a, b));
  return composedLoss({ operation, reduction }, [anchor, positive, negative], (a, near, far) =>
    tripletLoss(a, near, far, { distance, margin, swap }),
  );
}
const tripletByParameters = parameters("tripletMarginWithDistanceLoss", {
  anchor: operand(aTensor),
  positive: operand(aTensor),
  negative: operand(aTensor),
  distanceFunction: named(aFunction<(a: Tensor, b: Tensor) => Tensor>()),
  margin: named(someNumber, 1),
  swap: named(flag, false),
  reduction: reductionParameter,
});

interface TripletDistances {
  readonly distance: (a: Tensor, b: Tensor) => Tensor;
  readonly margin: number;
  readonly swap: boolean;
}

function tripletLoss(a: Tensor, near: Tensor, far: Tensor, { distance, margin, swap }: TripletDistances): Tensor {
  const toFar = distance(a, far);
  const apart = swap ? minimum(toFar, distance(near, far)) : toFar;
  return relu(add(sub(distance(a, near), apart), margin));
}
