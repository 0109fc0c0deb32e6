/** Distances between tensors, and between all pairs of points. */
import { needsGradient } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { accumulationDType, computationDType, type DType, isComplex, isFloat, realDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { broadcastShapes, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, sub } from "../elementwise/arithmetic.ts";
import { indexSelect } from "../indexing/gather.ts";
import { triuIndices } from "../indexing/triangle_indices.ts";
import { cdist } from "../matmul/cdist.ts";
import { checkSameDType } from "../matmul/checks.ts";
import { distancesOfPairs, hasKernel } from "../matmul/distances.ts";
import { norm } from "../reduction/norm.ts";
import { flatten } from "../view/flatten.ts";
import { reshape } from "../view/reshape.ts";
import { select } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { fusesRowPairs, rowPairs } from "./row_pairs.cpu.ts";

/** Options of {@link dist} and {@link pdist}. */
export interface DistOptions {
  /** The order of the norm. Default 2. */
  p?: number | undefined;
}

/**
 * Computes the p-norm of a − b over all elements: see `norm`.
 *
 * @param a floats; shapes broadcast
 * @param b of a's dtype
 * @returns of rank 0
 *
 * @example
 * dist(tensor([1, 2]), tensor([4, 6])); // float32 5
 *
 * @throws {ShapeError} if shapes can't be broadcast. @throws {DTypeError} if dtypes differ or are not floats.
 * @throws {ArgumentError} if p is NaN.
 */
export function dist<D extends DType>(a: Tensor<D>, b: Tensor<D>, ...options: Given<DistOptions, ["p"]>): Tensor<D>;
export function dist(...values: unknown[]): Tensor {
  const { a, b, p } = distParameters(values);
  checkFloats("dist", [a, b], true);
  broadcastShapes("dist", a.shape, b.shape);
  return underName("dist", () => tidy(() => fusedDistance(a, b, p) ?? normOfDifference(a, b, p)));
}
dist.method = "same" as const;
const distParameters = parameters("dist", {
  a: operand(aTensor),
  b: operand(aTensor),
  p: optional(aNumber({ holds: (p) => !Number.isNaN(p), expected: "a number, ±Infinity included" }), 2),
});

/**
 * Computes the distances of all pairs of points, each pair once: those of `cdist(x, x)` above the diagonal, in
 * row-major order. The gradient is 0 if two points are equal.
 *
 * @param x [points, coordinates], floats
 * @returns [points · (points − 1) / 2]
 *
 * @example
 * pdist(tensor([[0, 0], [3, 4], [0, 4]])); // float32 [5, 4, 3]
 *
 * @throws {ShapeError} if x is not a matrix. @throws {DTypeError} for integers and bools. @throws {ArgumentError} if p
 * is negative or NaN.
 */
export function pdist<D extends DType>(x: Tensor<D>, ...options: Given<DistOptions, ["p"]>): Tensor<D>;
export function pdist(...values: unknown[]): Tensor {
  const { x, p } = pdistParameters(values);
  checkFloats("pdist", [x]);
  if (x.rank !== 2)
    throw new ShapeError("pdist", "wrongRank", `expected points in rows, [points, coordinates], got ${x.describe()}`);
  return underName("pdist", () =>
    tidy(() => {
      const order = x.shape[1] === 0 ? 1 : p;
      if (hasKernel(order, needsGradient(x))) return pairsByKernel(x, order);
      const pairs = triuIndices(x.shape[0], x.shape[0], 1);
      const [first, second] = [0, 1].map((at) => indexSelect(x, select(pairs, 0, at), { dim: 0 }));
      return normOfDifference(first, second, order, -1);
    }),
  );
}
pdist.method = "same" as const;
const pdistParameters = parameters("pdist", {
  x: operand(aTensor),
  p: optional(aNumber({ holds: (p) => p >= 0, expected: "a number of at least 0, Infinity included" }), 2),
});

/** With a gradient or inside of `vmap`, the pairs are selected from all distances, which have kernels and rules. */
function pairsByKernel(x: Tensor, p: number): Tensor {
  const wide = unsqueeze(toDType(x, accumulationDType(x.dtype)), 0);
  if (!needsGradient(x) && !x.storage.batch) return toDType(distancesOfPairs(wide, p), x.dtype);
  const count = x.shape[0];
  const pairs = triuIndices(count, count, 1);
  const places = add(mul(select(pairs, 0, 0), BigInt(count)), select(pairs, 0, 1));
  return indexSelect(reshape(cdist(x, x, { p }), [count * count]), places, { dim: 0 });
}

/** Returns the distance of contiguous tensors, as vectors; undefined for other calls than the fused one computes. */
function fusedDistance(a: Tensor, b: Tensor, p: number): Tensor | undefined {
  const vectors = p === 2 && sameShape(a.shape, b.shape) && a.isContiguous && b.isContiguous;
  if (!vectors || !fusesRowPairs([a.size], 0, a, b)) return undefined;
  const [first, second] = [flatten(a), flatten(b)];
  const pair = { a: first, b: second, shape: first.shape, axis: 0 };
  return toDType(rowPairs("dist", "distance", pair, { eps: 0 }), a.dtype);
}

function normOfDifference(a: Tensor, b: Tensor, p: number, dim?: number): Tensor {
  const [left, right] = [a, b].map((each) => toDType(each, computationDType(a.dtype)));
  return toDType(norm(sub(left, right), { p, dim }), realDType(a.dtype));
}

function checkFloats(operation: string, operands: readonly Tensor[], takesComplex = false): void {
  checkSameDType(operation, operands);
  const { dtype } = operands[0];
  if (isFloat(dtype) || (takesComplex && isComplex(dtype))) return;
  const given = operands.map((each) => each.describe()).join(" and ");
  throw new DTypeError(operation, "notAFloat", `expected floats, got ${given}; convert with toDType(x, "float32")`);
}
