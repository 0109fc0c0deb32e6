import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { axis, flag } from "../../core/kinds.ts";
import { operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor, expectNumbers } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { copyOf } from "../copy/copy.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { renamed } from "../elementwise/define.ts";
import { div } from "../elementwise/division.ts";
import { maximum, minimum } from "../elementwise/extrema.ts";
import { reshape } from "../view/reshape.ts";
import { selectAt, ties } from "./derivatives.ts";
import { expandResult } from "./expand_result.ts";
import type { ExtremumName } from "./primitive.ts";
import {
  extremum,
  fold,
  isOfOne,
  planReduction,
  type ReductionArguments,
  type ReductionOptions,
  type ReductionPlan,
  reductionParameters,
  refuseEmpty,
} from "./reduce.ts";
import { sum } from "./sum.ts";

/** Options of reductions over one axis that return an index. */
export interface IndexedOptions {
  /** The axis. Negative values count from the end. */
  dim?: number | undefined;
  /** Whether to keep the axis with size 1. Default false. */
  keepdim?: boolean | undefined;
}

/** Arguments of {@link IndexedOptions}: in an object, or the axis and `keepdim` by position. */
export type IndexedArguments =
  | [options?: IndexedOptions]
  | [dim: number | undefined, options?: Omit<IndexedOptions, "dim">]
  | [dim: number | undefined, keepdim: boolean | undefined];

/** {@link IndexedArguments} with a required axis. */
export type AlongAxis =
  | [options: IndexedOptions & { dim: number }]
  | [dim: number, options?: Omit<IndexedOptions, "dim">]
  | [dim: number, keepdim: boolean | undefined];

function indexedParameters(operation: string) {
  return parameters(operation, { x: operand(aTensor), dim: optional(axis), keepdim: optional(flag, false) });
}

/** Result of `max` and `min` along an axis. */
export interface ValuesAndIndices<D extends DType = DType> {
  readonly values: Tensor<D>;
  /** Indices along the axis; the first of equal elements. */
  readonly indices: Tensor<"int64">;
}

/**
 * Computes the largest element over axes. The result is NaN if an element is NaN. Equally large elements share the
 * gradient.
 *
 * @example
 * amax(tensor([[1, 7], [3, 5]]), { dim: 0 }); // float32 [3, 7]
 *
 * @throws {ShapeError} if there are no elements along the axes, or an axis is out of range or given twice.
 */
export function amax<D extends DType>(x: Tensor<D>, ...options: ReductionArguments): Tensor<D>;
export function amax(...values: unknown[]): Tensor {
  const { x, dim, keepdim } = amaxParameters(values);
  return sharedExtremum("amax", "amax", x, { dim, keepdim });
}
const amaxParameters = reductionParameters("amax");
amax.method = "same" as const;

/**
 * Computes the smallest element over axes. @see {@link amax}
 *
 * @example
 * amin(tensor([[1, 7], [3, 5]]), { dim: 1 }); // float32 [1, 3]
 */
export function amin<D extends DType>(x: Tensor<D>, ...options: ReductionArguments): Tensor<D>;
export function amin(...values: unknown[]): Tensor {
  const { x, dim, keepdim } = aminParameters(values);
  return sharedExtremum("amin", "amin", x, { dim, keepdim });
}
const aminParameters = reductionParameters("amin");
amin.method = "same" as const;

/** Computes an extremum over axes; equal elements share its gradient. */
export function sharedExtremum<D extends DType>(
  operation: string,
  name: "amax" | "amin" | "nanmax" | "nanmin",
  x: Tensor<D>,
  options: ReductionOptions,
): Tensor<D> {
  const plan = planReduction(operation, x, options);
  refuseEmpty(operation, x, plan);
  const output = isOfOne(x, plan)
    ? noGrad(() => copyOf(operation, reshape(x, plan.shape)))
    : fold(name, x, plan, x.dtype);
  record(operation, [x], [output], [x, output], ([gradient], [saved, result]) => {
    const whole = saved.shape;
    const shares = evenShares(ties(saved, expandResult(result, plan, whole)), plan);
    return [mul(expandResult(gradient, plan, whole), shares)];
  });
  return output;
}

/** @internal Divides 0/1 weights by their sum along the reduced axes. */
export function evenShares(weights: Tensor, { axes }: ReductionPlan): Tensor {
  return axes.length === 0 ? weights : div(weights, sum(weights, { dim: axes, keepdim: true }));
}

/**
 * Returns the largest of all elements (a tensor without axes), or with `dim` the largest elements along that axis and
 * their indices. With a tensor as second argument, it computes the elementwise {@link maximum}. The result is NaN if an
 * element is NaN. With `dim`, the gradient goes to the element at the index; without, equally large elements share it.
 *
 * @example
 * const { values, indices } = max(tensor([[1, 7], [3, 5]]), { dim: 1 }); // float32 [7, 5], int64 [1, 1]
 *
 * @throws {ShapeError} if there are no elements to choose from, or an axis is out of range.
 * @throws {ArgumentError} for several axes.
 */
export function max<D extends DType, E extends DType>(x: Tensor<D>, other: Tensor<E>): Tensor<Promote<D, E>>;
export function max<D extends DType>(x: Tensor<D>, options?: { dim?: undefined }): Tensor<D>;
export function max<D extends DType>(x: Tensor<D>, ...options: AlongAxis): ValuesAndIndices<D>;
export function max<D extends DType>(x: Tensor<D>, options?: IndexedOptions): Tensor<D> | ValuesAndIndices<D>;
export function max(...values: unknown[]): Tensor | ValuesAndIndices {
  const [first, second] = values;
  if (values.length === 2 && Tensor.isTensor(first) && Tensor.isTensor(second)) return maxOfTwo(first, second);
  const { x, dim, keepdim } = maxParameters(values);
  return dim === undefined ? sharedExtremum("max", "amax", x, {}) : extremumAlong("max", x, { dim, keepdim });
}
const maxParameters = indexedParameters("max");
const maxOfTwo = renamed("max", maximum);
max.method = "declared" as const;

/**
 * Returns the smallest element; with `dim`, the smallest elements along it and their indices; with a second tensor, the
 * smaller of each pair of elements. NaN if an element is NaN. See {@link max}.
 *
 * @example
 * min(tensor([[1, 5], [4, 2]])); // float32 1
 * min(tensor([[1, 5], [4, 2]]), 1).indices; // int64 [0, 1]
 *
 * @throws as {@link max}
 */
export function min<D extends DType, E extends DType>(x: Tensor<D>, other: Tensor<E>): Tensor<Promote<D, E>>;
export function min<D extends DType>(x: Tensor<D>, options?: { dim?: undefined }): Tensor<D>;
export function min<D extends DType>(x: Tensor<D>, ...options: AlongAxis): ValuesAndIndices<D>;
export function min<D extends DType>(x: Tensor<D>, options?: IndexedOptions): Tensor<D> | ValuesAndIndices<D>;
export function min(...values: unknown[]): Tensor | ValuesAndIndices {
  const [first, second] = values;
  if (values.length === 2 && Tensor.isTensor(first) && Tensor.isTensor(second)) return minOfTwo(first, second);
  const { x, dim, keepdim } = minParameters(values);
  return dim === undefined ? sharedExtremum("min", "amin", x, {}) : extremumAlong("min", x, { dim, keepdim });
}
const minParameters = indexedParameters("min");
const minOfTwo = renamed("min", minimum);
min.method = "declared" as const;

function extremumAlong<D extends DType>(
  name: ExtremumName,
  x: Tensor<D>,
  options: IndexedOptions,
): ValuesAndIndices<D> {
  const plan = planReduction(name, x, options);
  refuseEmpty(name, x, plan);
  const [values, indices] = extremum(name, x, plan) as [Tensor<D>, Tensor<"int64">];
  record(name, [x], [values], [indices], ([gradient], [saved]) => {
    const whole = x.shape;
    return [selectAt(expandResult(gradient, plan, whole), expandResult(saved, plan, whole), plan.axes[0] ?? 0)];
  });
  return { values, indices };
}

/**
 * Returns the index of the largest element along an axis, or of all elements in row-major order. It is the first of
 * equal elements. NaN counts as larger than every number.
 *
 * @returns a scalar, or with `dim` x's shape without that axis (of size 1 with `keepdim`)
 *
 * @example
 * argmax(tensor([[1, 7], [3, 5]]), { dim: 1 }); // int64 [1, 1]
 *
 * @throws {ShapeError} if there are no elements to choose from, or an axis is out of range.
 * @throws {DTypeError} for bools.
 */
export function argmax(x: Tensor, ...options: IndexedArguments): Tensor<"int64">;
export function argmax(...values: unknown[]): Tensor<"int64"> {
  const { x, dim, keepdim } = argmaxParameters(values);
  return extremeIndex("argmax", "max", x, { dim, keepdim });
}
const argmaxParameters = indexedParameters("argmax");
argmax.method = "int64" as const;

/**
 * Returns the index of the smallest element. NaN counts as smaller than every number. @see {@link argmax}
 *
 * @returns a scalar, or with `dim` x's shape without that axis (of size 1 with `keepdim`)
 *
 * @example
 * argmin(tensor([[1, 7], [3, 5]]), { dim: 1 }); // int64 [0, 0]
 */
export function argmin(x: Tensor, ...options: IndexedArguments): Tensor<"int64">;
export function argmin(...values: unknown[]): Tensor<"int64"> {
  const { x, dim, keepdim } = argminParameters(values);
  return extremeIndex("argmin", "min", x, { dim, keepdim });
}
const argminParameters = indexedParameters("argmin");
argmin.method = "int64" as const;

function extremeIndex(operation: string, name: ExtremumName, x: Tensor, options: IndexedOptions): Tensor<"int64"> {
  expectNumbers(operation, x, "bool");
  const plan = planReduction(operation, x, options);
  refuseEmpty(operation, x, plan);
  const [values, indices] = underName(operation, () => extremum(name, x, plan)) as [Tensor, Tensor<"int64">];
  values.dispose();
  return indices;
}
