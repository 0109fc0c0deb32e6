/** Gated, shrinkage and threshold activations, and softmin. */
import { underName } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import { aNumber, axis as axisKind, someNumber } from "../../core/kinds.ts";
import { notNegative } from "../../core/options.ts";
import { type Given, named, operand, optional, parameters, required } from "../../core/parameters.ts";
import { type DType, isInteger } from "../../tensor/dtype.ts";
import { aDType, aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { abs, mul, neg } from "../elementwise/arithmetic.ts";
import { le } from "../elementwise/comparison.ts";
import { defineTernary, type Ternary } from "../elementwise/define.ts";
import { scalarTensor } from "../elementwise/operands.ts";
import { where } from "../elementwise/where.ts";
import { floatOperand } from "../reduction/reduce.ts";
import { softmax } from "../softmax/softmax.ts";
import { axisOf, narrow } from "../view/slice.ts";
import { sigmoid } from "./sigmoid.ts";

/** Options of {@link glu}. */
export interface GluOptions {
  /** The axis to split in half. Default −1. */
  dim?: number | undefined;
}

/**
 * Computes the gated linear unit: the first half of an axis times the sigmoid of the second half.
 *
 * Source: Y. Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2016.
 *
 * @param x floats […, 2 n, …], with 2 n elements along `dim`
 * @returns […, n, …]
 *
 * @example
 * glu(tensor([2, 4, 0, 0])); // float32 [1, 2]
 *
 * @throws {ShapeError} for an axis out of range, or of odd size. @throws {DTypeError} for integers and bools.
 */
export function glu<D extends DType>(x: Tensor<D>, ...options: Given<GluOptions, ["dim"]>): Tensor<D>;
export function glu(...values: unknown[]): Tensor {
  const { x, dim } = gluParameters(values);
  const input = floatOperand("glu", x, undefined);
  const axis = axisOf("glu", x, dim);
  const half = x.shape[axis] / 2;
  if (!Number.isInteger(half))
    throw new ShapeError("glu", "oddSize", `expected an axis of even size, got axis ${axis} of ${x.describe()}`);
  return underName("glu", () =>
    tidy(() => mul(narrow(input, axis, 0, half), sigmoid(narrow(input, axis, half, half)))),
  );
}
glu.method = "same" as const;
const gluParameters = parameters("glu", { x: operand(aTensor), dim: optional(axisKind, -1) });

/** Computes 0 if |x| ≤ bound, else x with its magnitude reduced by `less`. */
const shrinkOf: Ternary = defineTernary("shrink", {
  reference: { float: (x, bound, less) => (Math.abs(x) <= bound ? 0 : x < 0 ? x + less : x - less) },
  gradient: (g, [x, bound], needs) => [needs[0] ? where(le(abs(x), bound), 0, g) : null, null, null],
});

/** Options of {@link hardshrink} and {@link softshrink}. */
export interface ShrinkOptions {
  /** Elements with |x| ≤ lambda become 0. Default 0.5. */
  lambda?: number | undefined;
}

/**
 * Computes x if |x| is above λ, else 0.
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * hardshrink(tensor([-1, 0.25, 2])); // float32 [-1, 0, 2]
 *
 * @throws {DTypeError} for integers and bools. @throws {ArgumentError} for a negative λ.
 */
export function hardshrink<D extends DType>(x: Tensor<D>, ...options: Given<ShrinkOptions, ["lambda"]>): Tensor<D>;
export function hardshrink(...values: unknown[]): Tensor {
  const { x, lambda } = hardshrinkParameters(values);
  const input = floatOperand("hardshrink", x, undefined);
  const [bound, less] = [scalarTensor(lambda, input.dtype), scalarTensor(0, input.dtype)];
  return underName("hardshrink", () => shrinkOf([input, bound, less]));
}
hardshrink.method = "same" as const;
const shrinking = { x: operand(aTensor), lambda: optional(aNumber(notNegative), 0.5) } as const;
const hardshrinkParameters = parameters("hardshrink", shrinking);

/**
 * Computes x − λ for x above λ, x + λ for x below −λ, and 0 between.
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * softshrink(tensor([-1, 0.25, 2])); // float32 [-0.5, 0, 1.5]
 *
 * @throws {DTypeError} for integers and bools. @throws {ArgumentError} for a negative λ.
 */
export function softshrink<D extends DType>(x: Tensor<D>, ...options: Given<ShrinkOptions, ["lambda"]>): Tensor<D>;
export function softshrink(...values: unknown[]): Tensor {
  const { x, lambda } = softshrinkParameters(values);
  const input = floatOperand("softshrink", x, undefined);
  const bound = scalarTensor(lambda, input.dtype);
  return underName("softshrink", () => shrinkOf([input, bound, bound]));
}
softshrink.method = "same" as const;
const softshrinkParameters = parameters("softshrink", shrinking);

const replaceBelow: Ternary = defineTernary("threshold", {
  reference: { float: (x, above, value) => (x <= above ? value : x) },
  gradient: (g, [x, above], needs) => [needs[0] ? where(le(x, above), 0, g) : null, null, null],
});

/**
 * Replaces elements that are not above a threshold by a value, with gradient 0. NaN stays NaN.
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * threshold(tensor([0, 1, 2]), 1, 9); // float32 [9, 9, 2]
 */
export function threshold<D extends DType>(x: Tensor<D>, threshold: number, value: number): Tensor<D>;
export function threshold(...values: unknown[]): Tensor {
  const { x, threshold: above, value } = thresholdParameters(values);
  const input = isInteger(x.dtype) ? x : floatOperand("threshold", x, undefined);
  if (isInteger(x.dtype)) return underName("threshold", () => tidy(() => where(le(input, above), value, input)));
  return replaceBelow([input, scalarTensor(above, input.dtype), scalarTensor(value, input.dtype)]);
}
threshold.method = "same" as const;
const thresholdParameters = parameters("threshold", {
  x: operand(aTensor),
  threshold: required(someNumber),
  value: required(someNumber),
});

/** Options of {@link softmin}. */
export interface SoftminOptions {
  /** The axis; negative counts from the end. */
  dim: number;
  /** A float dtype to convert elements to first. Default: x's dtype. */
  dtype?: DType | undefined;
}

/**
 * Computes exp(−x) / Σ exp(−x) along an axis.
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * softmin(tensor([0, 0]), 0); // float32 [0.5, 0.5]
 *
 * @throws {ShapeError} for an axis out of range. @throws {DTypeError} for integers and bools.
 */
export function softmin<D extends DType>(
  x: Tensor<D>,
  ...options: [dim: number, options?: Omit<SoftminOptions, "dim">] | [options: SoftminOptions]
): Tensor<D>;
export function softmin(...values: unknown[]): Tensor {
  const { x, dim, dtype } = softminParameters(values);
  const input = dtype === undefined ? floatOperand("softmin", x, dtype) : x; // for integers: negates before converting
  const axis = x.rank === 0 ? dim : axisOf("softmin", x, dim);
  return underName("softmin", () => tidy(() => softmax(neg(input), { dim: axis, dtype })));
}
softmin.method = "same" as const;
const softminParameters = parameters("softmin", {
  x: operand(aTensor),
  dim: required(axisKind),
  dtype: named(aDType),
});
