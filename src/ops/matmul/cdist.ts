import { noGrad } from "../../autograd/modes.ts";
import { needsGradient, record } from "../../autograd/record.ts";
import { lastElement } from "../../core/collections.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber, choice } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { broadcastShapes, elementCount, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, square, sub } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { sqrt } from "../elementwise/power.ts";
import { cat } from "../join/cat.ts";
import { dividedWhereNotZero } from "../reduction/derivatives.ts";
import { mean } from "../reduction/mean.ts";
import { norm } from "../reduction/norm.ts";
import { sum } from "../reduction/sum.ts";
import { expand } from "../view/expand.ts";
import { transpose } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { narrow } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { checkSameDType } from "./checks.ts";
import { distances, hasKernel, pulledPoints } from "./distances.ts";
import { plainMatmul as matmul } from "./plain_matmul.ts";

const computeModes = ["useMmForEuclidDistIfNecessary", "useMmForEuclidDist", "donotUseMmForEuclidDist"] as const;
/** Number of points above which PyTorch uses a matrix product. */
const FEW_POINTS = 25;

/** Options of {@link cdist}. */
export interface CdistOptions {
  /** The order p of the norm: any number from 0 to Infinity. Default 2. */
  p?: number;
  /**
   * How Euclidean distances are computed. By default they are computed from differences for all sizes, with an error of
   * a few roundings. `"useMmForEuclidDistIfNecessary"`, PyTorch's default, uses a matrix product if an operand has more
   * than 25 points; `"useMmForEuclidDist"` always does: √(|x|² + |y|² − 2 x·y) after subtracting the points' mean. On
   * metal, it is much faster for many points of many coordinates. The error of a distance is then about
   * ε (|x|² + |y|²) / distance, so points that (nearly) coincide get a distance of about √ε times their spread.
   */
  computeMode?: (typeof computeModes)[number];
}

/**
 * Computes the distances between all points of `x1` and `x2`: `out[…, i, j] = ‖x1[…, i, :] − x2[…, j, :]‖ₚ`. Batches
 * broadcast. The gradient is 0 where two points are equal.
 *
 * @param x1 […, m, k], of a float dtype; float16 and bfloat16 are computed in float32
 * @param x2 […, n, k], of the same dtype
 * @returns […, m, n]
 *
 * @example
 * cdist(tensor([[0, 0], [3, 4]]), tensor([[0, 0]])); // float32 [[0], [5]]
 *
 * @throws {ShapeError} if an operand has fewer than two axes, or shapes do not match.
 * @throws {DTypeError} if dtypes differ or are not floats.
 * @throws {ArgumentError} if p is negative or NaN.
 */
export function cdist<D extends DType>(
  x1: Tensor<D>,
  x2: Tensor<D>,
  ...options: Given<CdistOptions, ["p", "computeMode"]>
): Tensor<D>;
export function cdist(...values: unknown[]): Tensor {
  const { x1, x2, p, computeMode } = cdistParameters(values);
  checkPoints(x1, x2);
  const [m, n, k] = [x1.shape.at(-2)!, x2.shape.at(-2)!, lastElement(x1.shape)];
  const batch = broadcastShapes("cdist", x1.shape.slice(0, -2), x2.shape.slice(0, -2));
  const shape = [...batch, m, n];
  const wide = x1.dtype === "float64" ? "float64" : "float32";
  const isLarge = computeMode === "useMmForEuclidDistIfNecessary" && Math.max(m, n) > FEW_POINTS;
  const isProduct = p === 2 && (isLarge || computeMode === "useMmForEuclidDist");
  return tidy(() => {
    const [a, b] = [points(toDType(x1, wide), batch), points(toDType(x2, wide), batch)];
    return toDType(reshape(isProduct ? byProducts(a, b) : byDifferences(a, b, k === 0 ? 1 : p), shape), x1.dtype);
  });
}
const distanceOrder = aNumber({ holds: (p) => p >= 0, expected: "a number of at least 0, Infinity included" });
const cdistParameters = parameters("cdist", {
  x1: operand(aTensor),
  x2: operand(aTensor),
  p: optional(distanceOrder, 2),
  computeMode: optional(choice(...computeModes), "donotUseMmForEuclidDist"),
});

function checkPoints(x1: Tensor, x2: Tensor): void {
  checkSameDType("cdist", [x1, x2]);
  const both = `${x1.describe()} and ${x2.describe()}`;
  if (!isFloat(x1.dtype))
    throw new DTypeError("cdist", "notAFloat", `expected floats, got ${both}; convert with toDType(x, "float32")`);
  if (x1.rank < 2 || x2.rank < 2)
    throw new ShapeError("cdist", "wrongRank", `expected points in rows, […, points, coordinates], got ${both}`);
  if (x1.shape.at(-1) !== x2.shape.at(-1))
    throw new ShapeError("cdist", "shapesDiffer", `expected points with equally many coordinates, got ${both}`);
}

/** Returns the points as [batch, points, coordinates]. */
function points(x: Tensor, batch: Shape): Tensor {
  const [count, width] = tupleOf(x.shape.slice(-2), 2);
  return reshape(expand(x, [...batch, count, width]), [elementCount(batch), count, width]);
}

/**
 * Maximum number of differences computed at a time: 64 MB of float32. If a gradient is needed, all differences are
 * kept.
 */
const MOST_DIFFERENCES = 2 ** 24;

function byDifferences(a: Tensor, b: Tensor, p: number): Tensor {
  if (hasKernel(p, needsGradient(a, b))) return byKernel(a, b, p);
  const [batch, m, k] = tupleOf(a.shape, 3);
  const rows = Math.max(1, Math.floor(MOST_DIFFERENCES / (batch * b.shape[1] * k)));
  const others = unsqueeze(b, 1);
  const blocks: Tensor[] = [];
  for (let start = 0; start === 0 || start < m; start += rows) {
    const block = narrow(a, 1, start, Math.min(rows, m - start));
    blocks.push(norm(sub(unsqueeze(block, 2), others), { p, dim: 3 }));
  }
  return blocks.length === 1 ? blocks[0] : cat(blocks, 1);
}

/** Computes the gradient of {@link byProducts} as a sum of differences: Σⱼ W[·, j] (x − y[j]). */
function byKernel(x: Tensor, y: Tensor, p: number): Tensor {
  const output = distances(x, y, p);
  record("cdist", [x, y], [output], [x, y, output], ([gradient], [left, right, whole], needs) => {
    const weights = dividedWhereNotZero(gradient, whole);
    return [
      needs[0] ? pulledPoints(weights, left, right) : null,
      needs[1] ? pulledPoints(transpose(weights, 1, 2), right, left) : null,
    ];
  });
  return output;
}

/**
 * Computes distances by one matrix product. Let D̄ be the gradient of the distances D, and W = D̄ / D, which is 0 where
 * D is 0. The gradient of the points x is x Σⱼ W[·, j] − W y; that of y is the same with Wᵀ.
 */
function byProducts(x: Tensor, y: Tensor): Tensor {
  const center = noGrad(() => mean(cat([x, y], 1), { dim: 1, keepdim: true }));
  const [a, b] = [sub(x, center), sub(y, center)];
  const output = noGrad(() => {
    const lengths = add(
      sum(square(a), { dim: 2, keepdim: true }),
      transpose(sum(square(b), { dim: 2, keepdim: true }), 1, 2),
    );
    return sqrt(clamp(sub(lengths, mul(matmul(a, transpose(b, 1, 2)), 2)), { min: 0 }));
  });
  record("cdist", [a, b], [output], [a, b, output], ([gradient], [left, right, whole], needs) => {
    const weights = dividedWhereNotZero(gradient, whole);
    return [
      needs[0] ? pulled(left, right, weights) : null,
      needs[1] ? pulled(right, left, transpose(weights, 1, 2)) : null,
    ];
  });
  return output;
}

const pulled = (side: Tensor, others: Tensor, weights: Tensor): Tensor =>
  sub(mul(side, sum(weights, { dim: 2, keepdim: true })), matmul(weights, others));
