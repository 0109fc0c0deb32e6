/**
 * Operations as methods: `a.add(b)` is `add(a, b)`. A function whose first operand is the tensor declares the dtype of
 * its result, as in `reshape.method = "same" as const`. The methods of the prototype and their types are derived from
 * these declarations:
 *
 * - `same`: the tensor's dtype.
 * - `parts`: a list of tensors with the tensor's dtype.
 * - `float`: the tensor's dtype if it is a float, otherwise float32.
 * - `bool`: bool.
 * - `truth`: bool, but uint8 for uint8.
 * - `int64`: int64.
 * - `promoted`: the common dtype of the tensor and another operand.
 * - `summed`: the tensor's dtype if it is a float, otherwise int64; or the option `dtype`.
 * - `averaged`: the tensor's dtype; or the option `dtype`.
 * - `own`: as declared in {@link OwnMethods}.
 */

import { ShapeError } from "../core/errors.ts";
import type { Along, AxisArguments } from "../core/kinds.ts";
import type { Given } from "../core/parameters.ts";
import type { DType, FloatDType } from "../tensor/dtype.ts";
import type { Promote } from "../tensor/promotion.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type BackwardArguments, backward, detach } from "./gradient/backward.ts";
import * as operations from "./index.ts";

/** Methods that are not operations, or have another name than the operation. */
const core = { backward, detach, to: operations.toDType, unfold: operations.slidingWindows } as const;

type Operations = typeof operations;

/** The names of functions whose methods have a kind. */
type NameOf<Kind extends string> = {
  [Name in keyof Operations]: Operations[Name] extends { readonly method: Kind } ? Name : never;
}[keyof Operations];

/** The parameters after the tensor. */
type Rest<F> = F extends (x: never, ...rest: infer R) => unknown ? R : never;
type RestAfterOther<F> = F extends (x: never, other: never, ...rest: infer R) => unknown ? R : never;
/** The parameters with a dtype in the options, which come last. */
type WithDType<R, E extends DType> = R extends readonly unknown[]
  ? Required<R> extends readonly [...infer First, infer Options]
    ? [...First, NonNullable<Options> & { readonly dtype: E }]
    : never
  : never;

// A mapped type over the functions keeps their doc comments, which editors show.
type Giving<Names extends keyof Operations, Result> = {
  [Name in Names]: (...rest: Rest<Operations[Name]>) => Result;
};
type Promoting<Names extends keyof Operations, D extends DType> = {
  [Name in Names]: <B extends operations.Operand>(
    other: B,
    ...rest: RestAfterOther<Operations[Name]>
  ) => Tensor<operations.ResultOf<Tensor<D>, B>>;
};
type Converting<Names extends keyof Operations, Otherwise extends DType> = {
  [Name in Names]: {
    <E extends DType>(...rest: WithDType<Rest<Operations[Name]>, E>): Tensor<E>;
    (...rest: Rest<Operations[Name]>): Tensor<Otherwise>;
  };
};

interface OwnMethods<D extends DType> {
  /** Computes xᵇ for each element, in float64. @see {@link operations.floatPower} */
  floatPower(exponent: operations.Operand): Tensor<"float64">;
  /** Computes the smallest and the largest element. @see {@link operations.aminmax} */
  aminmax(options?: { dim?: number | undefined; keepdim?: boolean | undefined }): operations.Extrema<D>;
  /** Returns whether all pairs of elements are close. @see {@link operations.allClose} */
  allClose(...rest: Rest<typeof operations.allClose>): boolean;
  /** Counts how often each whole number occurs. @see {@link operations.bincount} */
  bincount(options?: operations.BincountOptions): Tensor<"int64">;
  bincount<W extends DType>(
    weights: Tensor<W>,
    ...options: Given<operations.BincountOptions, ["minlength"]>
  ): Tensor<operations.WeightedCounts<W>>;
  /** Computes min(max(x, least), most) for each element. @see {@link operations.clamp} */
  clamp(...bounds: operations.ClampArguments): Tensor;
  /** Computes the correlation coefficients of variables, which are rows. @see {@link operations.corrcoef} */
  corrcoef(): Tensor<operations.FloatOf<D>>;
  /** Computes the covariance matrix of variables, which are rows. @see {@link operations.cov} */
  cov(options?: operations.CovarianceOptions & { readonly aweights?: undefined }): Tensor<operations.FloatOf<D>>;
  cov(options?: operations.CovarianceOptions): Tensor<FloatDType>;
  /** Computes the cumulative maximum and its indices. @see {@link operations.cummax} */
  cummax(...options: Along<operations.RunningOptions>): operations.ValuesAndIndices<D>;
  /** Computes the cumulative minimum and its indices. @see {@link operations.cummin} */
  cummin(...options: Along<operations.RunningOptions>): operations.ValuesAndIndices<D>;
  /** Returns whether the other tensor has the same shape and equal elements. @see {@link operations.equal} */
  equal(other: Tensor): boolean;
  /** Counts the elements in each interval. @see {@link operations.histogram} */
  histogram(bins: number | Tensor<D>, options?: operations.HistogramOptions): operations.Histogram<D>;
  /** Returns the k-th smallest element along an axis and its index. @see {@link operations.kthvalue} */
  kthvalue(k: number, ...options: operations.MedianArguments): operations.ValuesAndIndices<D>;
  /**
   * Returns the largest element; with `dim`, the largest along the axis and their indices. @see {@link operations.max}
   */
  max<E extends DType>(other: Tensor<E>): Tensor<Promote<D, E>>;
  max(options?: { dim?: undefined }): Tensor<D>;
  max(...options: operations.AlongAxis): operations.ValuesAndIndices<D>;
  /** Returns the median; with `dim`, the medians along that axis and their indices. @see {@link operations.median} */
  median(): Tensor<D>;
  median(...options: AxisArguments<operations.OrderOptions>): operations.ValuesAndIndices<D>;
  /**
   * Returns the smallest element, or with `dim` the smallest along the axis and their indices. @see
   * {@link operations.min}
   */
  min<E extends DType>(other: Tensor<E>): Tensor<Promote<D, E>>;
  min(options?: { dim?: undefined }): Tensor<D>;
  min(...options: operations.AlongAxis): operations.ValuesAndIndices<D>;
  /** Returns the most frequent element along an axis. @see {@link operations.mode} */
  mode(...options: operations.MedianArguments): operations.ValuesAndIndices<D>;
  /** Returns the median of the elements that are not NaN. @see {@link operations.nanmedian} */
  nanmedian(): Tensor<D>;
  nanmedian(...options: AxisArguments<operations.OrderOptions>): operations.ValuesAndIndices<D>;
  /** Sorts the elements along an axis and returns them with their indices. @see {@link operations.sort} */
  sort(...options: operations.SortArguments): operations.Sorted<D>;
  /** Computes the standard deviation and the mean over the same axes. @see {@link operations.stdMean} */
  stdMean(...options: AxisArguments<operations.VarianceOptions>): operations.DeviationAndMean<D>;
  /** Returns the k largest elements along an axis and their indices. @see {@link operations.topk} */
  topk(k: number, ...options: operations.TopkArguments): operations.Sorted<D>;
  /** Computes the sum of the main diagonal of a matrix. @see {@link operations.trace} */
  trace(): Tensor<operations.SumOf<D>>;
  /** Returns the distinct elements in ascending order. @see {@link operations.unique} */
  unique(
    options: operations.UniqueOptions & ({ returnInverse: true } | { returnCounts: true }),
  ): operations.UniqueElements<D>;
  unique(options?: operations.UniqueOptions): Tensor<D>;
  /** Collapses runs of equal elements. @see {@link operations.uniqueConsecutive} */
  uniqueConsecutive(
    options: operations.UniqueOptions & ({ returnInverse: true } | { returnCounts: true }),
  ): operations.UniqueElements<D>;
  uniqueConsecutive(options?: operations.UniqueOptions): Tensor<D>;
  /** Computes the variance and the mean over the same axes. @see {@link operations.varMean} */
  varMean(...options: AxisArguments<operations.VarianceOptions>): operations.VarianceAndMean<D>;
}

interface CoreMethods<D extends DType> {
  /**
   * Adds the gradient of this tensor to the `grad` of every leaf that requires one.
   *
   * @param gradient of this tensor's shape; default 1 for a tensor with one element
   * @throws {AutogradError} if nothing requires a gradient, or the graph was freed.
   */
  backward(...options: BackwardArguments): void;
  /** Returns a view without history that requires no gradient. */
  detach(): Tensor<D>;
  /**
   * Converts to another dtype; returns the tensor itself if it already has that dtype. @see {@link operations.toDType}
   */
  to<E extends DType>(dtype: E): Tensor<E>;
  /** Returns a view of the sliding windows along an axis. @see {@link operations.slidingWindows} */
  unfold(dim: number, size: number, step: number): Tensor<D>;
}

interface Transposes<D extends DType> {
  /** A view of a matrix with its axes swapped. @throws {ShapeError} if the rank is not 2; see {@link Transposes.mT} */
  readonly T: Tensor<D>;
  /** A view with the last two axes swapped. @throws {ShapeError} for a rank below 2 */
  readonly mT: Tensor<D>;
}

declare module "../tensor/tensor.ts" {
  interface Tensor<D extends DType>
    extends CoreMethods<D>,
      Transposes<D>,
      OwnMethods<D>,
      Giving<NameOf<"same">, Tensor<D>>,
      Giving<NameOf<"parts">, Tensor<D>[]>,
      Giving<NameOf<"float">, Tensor<operations.FloatOf<D>>>,
      Giving<NameOf<"bool">, Tensor<"bool">>,
      Giving<NameOf<"truth">, Tensor<operations.TruthOf<D>>>,
      Giving<NameOf<"int64">, Tensor<"int64">>,
      Promoting<NameOf<"promoted">, D>,
      Converting<NameOf<"summed">, operations.SumOf<D>>,
      Converting<NameOf<"averaged">, D> {}
}

/** The transposes that are properties, as in PyTorch. */
const transposes = {
  T(x: Tensor): Tensor {
    if (x.rank !== 2)
      throw new ShapeError("T", "wrongRank", `expected a matrix, got ${x.describe()}; use mT or permute`);
    return operations.transpose(x, 0, 1);
  },
  mT(x: Tensor): Tensor {
    if (x.rank < 2)
      throw new ShapeError("mT", "wrongRank", `expected a matrix or a batch of matrices, got ${x.describe()}`);
    return operations.transpose(x, -2, -1);
  },
} as const;
for (const [name, transposed] of Object.entries(transposes)) {
  const get = function (this: Tensor): Tensor {
    return transposed(this);
  };
  Object.defineProperty(Tensor.prototype, name, { get, configurable: true });
}

const isMethod = ([, value]: readonly [string, unknown]): boolean => typeof value === "function" && "method" in value;

/** The functions that are methods, by name. */
export const methods: Readonly<Record<string, unknown>> = {
  ...core,
  ...Object.fromEntries(Object.entries(operations).filter(isMethod)),
};

for (const [name, operation] of Object.entries(methods)) {
  const call = operation as (...values: readonly unknown[]) => unknown;
  const value = function (this: Tensor, ...rest: readonly unknown[]): unknown {
    return call(this, ...rest);
  };
  Object.defineProperty(Tensor.prototype, name, { value, writable: true, configurable: true });
}
