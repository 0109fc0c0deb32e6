/**
 * The primitives `cdist` and `cdistGradient`, on cpu only. On other backends, for other orders of the norm, and for
 * higher-order gradients, distances are composed of other operations (`cdist.ts`).
 */
import { needsGradient } from "../../autograd/record.ts";
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { array, dtype, flag, real, whole } from "../../backend/fields.ts";
import { isAnyInUse } from "../../backend/overrides.ts";
import { getBackend } from "../../backend/policy.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";
import { mul, sub } from "../elementwise/arithmetic.ts";
import { sum } from "../reduction/sum.ts";
import { unsqueeze } from "../view/squeeze.ts";

interface Attributes {
  readonly p: number;
  /** Whether the result has only the pairs i < j of one set of points, in row-major order. */
  readonly isTriangle: boolean;
}

const sizes = { batch: whole, m: whole, n: whole, k: whole };
const matrices = (count: number) => ({
  offsets: array(whole, count),
  batchStrides: array(whole, count),
  rowStrides: array(whole, count),
  columnStrides: array(whole, count),
});
const cdistCall = cpuCall("cdist", { dtype, p: real, isTriangle: flag, ...sizes, ...matrices(3) }, ["x", "y", "out"]);
const cdistGradientCall = cpuCall("cdistGradient", { dtype, ...sizes, ...matrices(4) }, ["weights", "x", "y", "out"]);

/** Returns offsets and strides of tensors [batch, rows, columns]; those of a tensor of rank 1 are not used. */
const layoutsOf = (tensors: readonly Tensor[]) => ({
  offsets: tensors.map(({ offset }) => offset),
  batchStrides: tensors.map(({ strides }) => strides.at(-3) ?? 0),
  rowStrides: tensors.map(({ strides }) => strides.at(-2) ?? 0),
  columnStrides: tensors.map(({ strides }) => strides.at(-1) ?? 0),
});

function sizesOf(x: Tensor, y: Tensor) {
  const [k, m, batch = 1] = x.shape.toReversed();
  return { dtype: x.dtype, batch, m, n: y.shape.at(-2)!, k };
}

const cdistCpu: Implementation<Attributes, readonly Tensor[], [Tensor]> = {
  run({ operation, inputs, outputs: [out], attributes }) {
    const [x, y] = tupleOf(inputs, 2);
    const operands = [x, y, out];
    cdistCall(operation, { ...attributes, ...sizesOf(x, y), ...layoutsOf(operands) }, operands);
  },
};
const cdistGradientCpu: Implementation<undefined, readonly Tensor[], [Tensor]> = {
  run({ operation, inputs, outputs: [out] }) {
    const [weights, x, y] = tupleOf(inputs, 3);
    const operands = [weights, x, y, out];
    cdistGradientCall(operation, { ...sizesOf(x, y), ...layoutsOf(operands) }, operands);
  },
};

const elsewhere = { missing: "distances are composed of other operations on this backend" } as const;
const cdistPrimitive = definePrimitive<Attributes>({
  name: "cdist",
  family: "matmul",
  implementations: { metal: elsewhere, cpu: cdistCpu, reference: elsewhere },
});
const cdistGradientPrimitive = definePrimitive({
  name: "cdistGradient",
  family: "matmul",
  implementations: { metal: elsewhere, cpu: cdistGradientCpu, reference: elsewhere },
});

const isOnCpu = (): boolean => getBackend() === "cpu" && !isAnyInUse();

/** Tests whether a kernel computes distances of this order, with their gradient if it is needed. */
export const hasKernel = (p: number, needsItsGradient: boolean): boolean =>
  isOnCpu() && (p === 2 || ((p === 1 || p === Number.POSITIVE_INFINITY) && !needsItsGradient));

/** Computes distances of x […, m, k] and y […, n, k] from differences; {@link hasKernel} must hold. */
export const distances = (x: Tensor, y: Tensor, p: number): Tensor =>
  execute(cdistPrimitive, [x, y], [...x.shape.slice(0, -1), y.shape.at(-2)!], x.dtype, { p, isTriangle: false });

/** Computes the distances of the pairs i < j of x [1, m, k]. {@link hasKernel} must hold. */
export function distancesOfPairs(x: Tensor, p: number): Tensor {
  const count = x.shape[1];
  return execute(cdistPrimitive, [x, x], [(count * (count - 1)) / 2], x.dtype, { p, isTriangle: true });
}

/** Computes Σⱼ weights[·, i, j] (x[·, i] − y[·, j]): the gradient of Euclidean distances. */
export function pulledPoints(weights: Tensor, x: Tensor, y: Tensor): Tensor {
  if (isOnCpu() && !needsGradient(weights, x, y))
    return execute(cdistGradientPrimitive, [weights, contiguous(x), contiguous(y)], x.shape, x.dtype, undefined);
  return sum(mul(unsqueeze(weights, 3), sub(unsqueeze(x, 2), unsqueeze(y, 1))), { dim: 2 });
}
