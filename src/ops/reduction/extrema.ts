import { record } from "../../autograd/record.ts";
import { ArgumentError, DTypeError } from "../../core/errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { div } from "../elementwise/division.ts";
import { selectAt, ties } from "./derivatives.ts";
import { expandResult } from "./expand_result.ts";
import type { ExtremumName } from "./primitive.ts";
import { extremum, fold, planReduction, type ReductionOptions, type ReductionPlan, refuseEmpty } from "./reduce.ts";
import { sum } from "./sum.ts";

/** Options of reductions that give an index, which are over one axis. */
export interface IndexedOptions {
  /** The axis, a negative one counted from the back. */
  dim?: number | undefined;
  /** Keep it with size 1. Default false. */
  keepdim?: boolean | undefined;
}

/** What `max` and `min` along an axis give. */
export interface ValuesAndIndices<D extends DType = DType> {
  readonly values: Tensor<D>;
  /** Along the axis: the first of equal elements. */
  readonly indices: Tensor<"int64">;
}

/**
 * The largest element over axes; a NaN where there is one. Where several are the largest, they share the gradient.
 *
 * @example
 * amax(tensor([[1, 7], [3, 5]]), { dim: 0 }); // float32 [3, 7]
 *
 * @throws {ShapeError} where there are no elements along the axes; for an axis out of range, or named twice.
 */
export const amax = <D extends DType>(x: Tensor<D>, options: ReductionOptions = {}): Tensor<D> =>
  sharedExtremum("amax", "amax", x, options);
amax.method = "same" as const;

/**
 * The smallest element over axes. @see {@link amax}
 *
 * @example
 * amin(tensor([[1, 7], [3, 5]]), { dim: 1 }); // float32 [1, 3]
 */
export const amin = <D extends DType>(x: Tensor<D>, options: ReductionOptions = {}): Tensor<D> =>
  sharedExtremum("amin", "amin", x, options);
amin.method = "same" as const;

function sharedExtremum<D extends DType>(
  operation: string,
  name: "amax" | "amin",
  x: Tensor<D>,
  options: ReductionOptions,
): Tensor<D> {
  const plan = planReduction(operation, x, options);
  refuseEmpty(operation, x, plan);
  const output = fold(name, x, plan, x.dtype);
  record(operation, [x], [output], [x, output], ([gradient], [saved, result]) => {
    const whole = saved!.shape;
    const shares = evenShares(ties(saved!, expandResult(result!, plan, whole)), plan);
    return [mul(expandResult(gradient!, plan, whole), shares)];
  });
  return output as Tensor<D>;
}

/** @internal Weights divided by how many there are along the reduced axes. */
export function evenShares(weights: Tensor, { axes }: ReductionPlan): Tensor {
  return axes.length === 0 ? weights : div(weights, sum(weights, { dim: axes, keepdim: true }) as Tensor);
}

/**
 * The largest of all elements (a tensor of rank 0), or with `dim` the largest along that axis with its index. A NaN
 * where there is one. The gradient goes to the element at the index; without `dim`, elements that are equally large
 * share it.
 *
 * @example
 * const { values, indices } = max(tensor([[1, 7], [3, 5]]), { dim: 1 }); // float32 [7, 5], int64 [1, 1]
 *
 * @throws {ShapeError} where there are no elements to choose from; for an axis out of range. @throws {ArgumentError}
 * for several axes.
 */
export function max<D extends DType>(x: Tensor<D>, options?: { dim?: undefined }): Tensor<D>;
export function max<D extends DType>(x: Tensor<D>, options: IndexedOptions & { dim: number }): ValuesAndIndices<D>;
export function max<D extends DType>(x: Tensor<D>, options?: IndexedOptions): Tensor<D> | ValuesAndIndices<D>;
export function max<D extends DType>(x: Tensor<D>, options: IndexedOptions = {}): Tensor<D> | ValuesAndIndices<D> {
  return options.dim === undefined ? sharedExtremum("max", "amax", x, {}) : extremumAlong("max", x, options);
}
max.method = "own" as const;

/** The smallest element. @see {@link max} */
export function min<D extends DType>(x: Tensor<D>, options?: { dim?: undefined }): Tensor<D>;
export function min<D extends DType>(x: Tensor<D>, options: IndexedOptions & { dim: number }): ValuesAndIndices<D>;
export function min<D extends DType>(x: Tensor<D>, options?: IndexedOptions): Tensor<D> | ValuesAndIndices<D>;
export function min<D extends DType>(x: Tensor<D>, options: IndexedOptions = {}): Tensor<D> | ValuesAndIndices<D> {
  return options.dim === undefined ? sharedExtremum("min", "amin", x, {}) : extremumAlong("min", x, options);
}
min.method = "own" as const;

function extremumAlong<D extends DType>(
  name: ExtremumName,
  x: Tensor<D>,
  options: IndexedOptions,
): ValuesAndIndices<D> {
  const plan = planReduction(name, x, oneAxis(name, options));
  refuseEmpty(name, x, plan);
  const [values, indices] = extremum(name, x, plan) as [Tensor<D>, Tensor<"int64">];
  record(name, [x], [values], [indices], ([gradient], [saved]) => {
    const whole = x.shape;
    return [selectAt(expandResult(gradient!, plan, whole), expandResult(saved!, plan, whole), plan.axes[0] ?? 0)];
  });
  return { values, indices };
}

/**
 * The index of the largest element along an axis, or of all elements in row-major order: the first of equal ones. A
 * NaN counts as larger than every number.
 *
 * @example
 * argmax(tensor([[1, 7], [3, 5]]), { dim: 1 }); // int64 [1, 1]
 *
 * @throws {ShapeError} where there are no elements to choose from; for an axis out of range. @throws {DTypeError} for
 * bools.
 */
export const argmax = (x: Tensor, options: IndexedOptions = {}): Tensor<"int64"> =>
  extremeIndex("argmax", "max", x, options);
argmax.method = "int64" as const;

/**
 * The index of the smallest element; a NaN counts as smaller than every number. @see {@link argmax}
 *
 * @example
 * argmin(tensor([[1, 7], [3, 5]]), { dim: 1 }); // int64 [0, 0]
 */
export const argmin = (x: Tensor, options: IndexedOptions = {}): Tensor<"int64"> =>
  extremeIndex("argmin", "min", x, options);
argmin.method = "int64" as const;

function extremeIndex(operation: string, name: ExtremumName, x: Tensor, options: IndexedOptions): Tensor<"int64"> {
  if (x.dtype === "bool")
    throw new DTypeError(operation, "bool", `expected numbers, got ${x.describe()}; convert with toDType(x, "uint8")`);
  const plan = planReduction(operation, x, oneAxis(operation, options));
  refuseEmpty(operation, x, plan);
  const [values, indices] = extremum(name, x, plan) as [Tensor, Tensor<"int64">];
  values.dispose();
  return indices;
}

function oneAxis(operation: string, options: IndexedOptions): ReductionOptions {
  const dim: unknown = options.dim;
  if (dim === undefined || typeof dim === "number") return options;
  throw new ArgumentError(operation, "oneAxis", `expected dim to be one axis, got ${JSON.stringify(dim)}`);
}
