import { noGrad } from "../../autograd/modes.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { firstBackend } from "../../backend/registry.ts";
import { DTypeError } from "../../core/errors.ts";
import { aNumber, flag } from "../../core/kinds.ts";
import { type Given, operand, optional, type Parsed, parameters } from "../../core/parameters.ts";
import { hasGradients } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { abs, add, mul, sub } from "../elementwise/arithmetic.ts";
import { bitwiseAnd, bitwiseOr } from "../elementwise/bitwise.ts";
import { eq, le } from "../elementwise/comparison.ts";
import { isfinite, isnan } from "../elementwise/predicates.ts";
import { all } from "./logic.ts";

/** Options of {@link isClose} and {@link allClose}. */
export interface CloseOptions {
  /** Relative tolerance, multiplied by the magnitude of the second element. Default 1e-5. */
  rtol?: number;
  /** Absolute tolerance. Default 1e-8. */
  atol?: number;
  /** Whether NaN is close to NaN. Default false. */
  equalNan?: boolean;
}
type CloseArguments = Given<CloseOptions, ["rtol", "atol", "equalNan"]>;

/**
 * Tests each pair of elements, broadcast, for |a − b| ≤ atol + rtol · |b|. Equal infinities are close. Floats are
 * compared in their dtype, as in PyTorch, and other dtypes in float32. PyTorch's `isclose`.
 *
 * @param a of any dtype and shape
 * @param b of the same dtype, and of a shape that broadcasts with it
 * @returns bool, of the broadcast shape; without a gradient
 *
 * @example
 * isClose(tensor([1, 2]), tensor([1.000001, 2.1])); // bool [true, false]
 *
 * @throws {DTypeError} if the dtypes differ.
 * @throws {ShapeError} if the shapes can't be broadcast together.
 * @throws {ArgumentError} if rtol or atol is negative or NaN.
 */
export function isClose(a: Tensor, b: Tensor, ...options: CloseArguments): Tensor<"bool">;
export function isClose(...values: unknown[]): Tensor<"bool"> {
  return noGrad(() => closeness("isClose", isCloseParameters(values)));
}
isClose.method = "bool" as const;

/**
 * Returns whether all pairs of elements are close; true for empty tensors. It waits for the device. PyTorch's
 * `allclose`.
 *
 * @see {@link isClose}
 *
 * @param a of any dtype and shape
 * @param b of the same dtype, and of a shape that broadcasts with it
 *
 * @example
 * allClose(tensor([1, 2]), tensor([1.000001, 2])); // true
 *
 * @throws {DTypeError} if the dtypes differ.
 * @throws {ShapeError} if the shapes can't be broadcast together.
 * @throws {ArgumentError} if rtol or atol is negative or NaN.
 */
export function allClose(a: Tensor, b: Tensor, ...options: CloseArguments): boolean;
export function allClose(...values: unknown[]): boolean {
  return noGrad(() => all(closeness("allClose", allCloseParameters(values))).item());
}
allClose.method = "declared" as const;

/**
 * Returns whether two tensors have the same shape and equal elements. NaN equals nothing, and −0 equals 0. It waits for
 * the device.
 *
 * @param a of any dtype and shape
 * @param b of the same dtype
 *
 * @example
 * equal(tensor([1, 2]), tensor([1, 2])); // true
 *
 * @throws {DTypeError} if the dtypes differ.
 */
export function equal(a: Tensor, b: Tensor): boolean;
export function equal(...values: unknown[]): boolean {
  const { a, b } = equalParameters(values);
  checkSameDType("equal", a, b);
  const isSameShape = a.shape.length === b.shape.length && a.shape.every((size, axis) => size === b.shape[axis]);
  if (!isSameShape) return false;
  return hasFewElements(a) && hasFewElements(b) ? hasSameElements(a, b) : noGrad(() => all(eq(a, b)).item());
}
equal.method = "declared" as const;

/** Up to this size, comparing the elements here is faster than two calls of a backend. */
const FEW = 256;

const hasFewElements = (x: Tensor): boolean =>
  x.size <= FEW && x.isContiguous && firstBackend() === "cpu" && liftingOf([x], undefined) === undefined;

function hasSameElements(a: Tensor, b: Tensor): boolean {
  const [mine, others] = [a.dataSync(), b.dataSync()];
  for (let at = 0; at < mine.length; at++) if (mine[at] !== others[at]) return false;
  return true;
}

const tolerance = aNumber({ holds: (value) => value >= 0, expected: "a number of at least 0" });
const closeParameters = {
  a: operand(aTensor),
  b: operand(aTensor),
  rtol: optional(tolerance, 1e-5),
  atol: optional(tolerance, 1e-8),
  equalNan: optional(flag, false),
};
const isCloseParameters = parameters("isClose", closeParameters);
const allCloseParameters = parameters("allClose", closeParameters);
const equalParameters = parameters("equal", { a: operand(aTensor), b: operand(aTensor) });

function closeness(name: string, { a, b, rtol, atol, equalNan }: Parsed<typeof closeParameters>): Tensor<"bool"> {
  checkSameDType(name, a, b);
  let close = eq(a, b); // includes equal infinities
  if (equalNan && hasGradients(a.dtype)) close = bitwiseOr(close, bitwiseAnd(isnan(a), isnan(b)));
  if (rtol === 0 && atol === 0) return close;
  const [x, y] = hasGradients(a.dtype) ? [a, b] : [toDType(a, "float32"), toDType(b, "float32")];
  const difference = abs(sub(x, y));
  const isWithin = le(difference, add(abs(mul(y, rtol)), atol));
  return bitwiseOr(close, bitwiseAnd(isfinite(difference), isWithin));
}

function checkSameDType(name: string, a: Tensor, b: Tensor): void {
  if (a.dtype === b.dtype) return;
  const both = `${a.dtype} and ${b.dtype}`;
  throw new DTypeError(name, "dtypesDiffer", `expected two tensors of one dtype, got ${both}; convert with toDType()`);
}
