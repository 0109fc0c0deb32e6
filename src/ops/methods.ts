/**
 * Operations as methods: `a.add(b)` is `add(a, b)`. A function whose first operand is the tensor says what becomes of
 * its dtype, as in `reshape.method = "same" as const`. From that come the methods of the prototype, and their types:
 *
 * - `same`: it stays.
 * - `parts`: it stays, in each of a list of tensors.
 * - `float`: floats stay, all else becomes float32.
 * - `bool`: bool.
 * - `truth`: bool, but uint8 of uint8.
 * - `int64`: int64.
 * - `promoted`: what it and another operand have in common.
 * - `summed`: floats stay, all else becomes int64; or the option `dtype`.
 * - `averaged`: it stays; or the option `dtype`.
 * - `own`: as {@link OwnMethods} says.
 */

import { ShapeError } from "../core/errors.ts";
import type { Along, AxisArguments } from "../core/kinds.ts";
import type { Given } from "../core/parameters.ts";
import type { DType, FloatDType } from "../tensor/dtype.ts";
import type { Promote } from "../tensor/promotion.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type BackwardArguments, backward, detach } from "./gradient/backward.ts";
import * as operations from "./index.ts";

/** Methods that are no operations, or have another name there. */
const core = { backward, detach, to: operations.toDType, unfold: operations.slidingWindows } as const;

type Operations = typeof operations;

/** The functions that are methods of a kind. */
type NameOf<Kind extends string> = {
  [Name in keyof Operations]: Operations[Name] extends { readonly method: Kind } ? Name : never;
}[keyof Operations];

/** The parameters after the tensor. */
type Rest<F> = F extends (x: never, ...rest: infer R) => unknown ? R : never;
type RestAfterOther<F> = F extends (x: never, other: never, ...rest: infer R) => unknown ? R : never;
/** The parameters with a dtype among the options, which come last. */
type WithDType<R, E extends DType> = R extends readonly unknown[]
  ? Required<R> extends readonly [...infer First, infer Options]
    ? [...First, NonNullable<Options> & { readonly dtype: E }]
    : never
  : never;

// A type mapped over the functions keeps their comments, which editors show.
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
  /** xᵇ for each element, in float64. @see {@link operations.floatPower} */
  floatPower(exponent: operations.Operand): Tensor<"float64">;
  /** The smallest and the largest element. @see {@link operations.aminmax} */
  aminmax(options?: { dim?: number | undefined; keepdim?: boolean | undefined }): operations.Extrema<D>;
  /** Whether all pairs of elements are close. @see {@link operations.allClose} */
  allClose(...rest: Rest<typeof operations.allClose>): boolean;
  /** How often each whole number is there. @see {@link operations.bincount} */
  bincount(options?: operations.BincountOptions): Tensor<"int64">;
  bincount<W extends DType>(
    weights: Tensor<W>,
    ...options: Given<operations.BincountOptions, ["minlength"]>
  ): Tensor<operations.WeightedCounts<W>>;
  /** min(max(x, least), most) for each element. @see {@link operations.clamp} */
  clamp(...bounds: operations.ClampArguments): Tensor;
  /** The correlation coefficients of variables, which are rows. @see {@link operations.corrcoef} */
  corrcoef(): Tensor<operations.FloatOf<D>>;
  /** The covariances of variables, which are rows. @see {@link operations.cov} */
  cov(options?: operations.CovarianceOptions & { readonly aweights?: undefined }): Tensor<operations.FloatOf<D>>;
  cov(options?: operations.CovarianceOptions): Tensor<FloatDType>;
  /** The largest element up to each one, and its index. @see {@link operations.cummax} */
  cummax(...options: Along<operations.RunningOptions>): operations.ValuesAndIndices<D>;
  /** The smallest element up to each one, and its index. @see {@link operations.cummin} */
  cummin(...options: Along<operations.RunningOptions>): operations.ValuesAndIndices<D>;
  /** Whether the other tensor has the same shape and equal elements. @see {@link operations.equal} */
  equal(other: Tensor): boolean;
  /** How many elements there are in each interval. @see {@link operations.histogram} */
  histogram(bins: number | Tensor<D>, options?: operations.HistogramOptions): operations.Histogram<D>;
  /** The k-th smallest element along an axis, and its index. @see {@link operations.kthvalue} */
  kthvalue(k: number, ...options: operations.MedianArguments): operations.ValuesAndIndices<D>;
  /** The largest element; with `dim` along that axis, with its index. @see {@link operations.max} */
  max<E extends DType>(other: Tensor<E>): Tensor<Promote<D, E>>;
  max(options?: { dim?: undefined }): Tensor<D>;
  max(...options: operations.AlongAxis): operations.ValuesAndIndices<D>;
  /** The median; with `dim` along that axis, with its index. @see {@link operations.median} */
  median(): Tensor<D>;
  median(...options: AxisArguments<operations.OrderOptions>): operations.ValuesAndIndices<D>;
  /** The smallest element; with `dim` along that axis, with its index. @see {@link operations.min} */
  min<E extends DType>(other: Tensor<E>): Tensor<Promote<D, E>>;
  min(options?: { dim?: undefined }): Tensor<D>;
  min(...options: operations.AlongAxis): operations.ValuesAndIndices<D>;
  /** The element that is there most often along an axis. @see {@link operations.mode} */
  mode(...options: operations.MedianArguments): operations.ValuesAndIndices<D>;
  /** The median of what is not NaN. @see {@link operations.nanmedian} */
  nanmedian(): Tensor<D>;
  nanmedian(...options: AxisArguments<operations.OrderOptions>): operations.ValuesAndIndices<D>;
  /** The elements along an axis in order, and their indices. @see {@link operations.sort} */
  sort(...options: operations.SortArguments): operations.Sorted<D>;
  /** The standard deviation and the mean over the same axes. @see {@link operations.stdMean} */
  stdMean(...options: AxisArguments<operations.VarianceOptions>): operations.DeviationAndMean<D>;
  /** The k largest elements along an axis, and their indices. @see {@link operations.topk} */
  topk(k: number, ...options: operations.TopkArguments): operations.Sorted<D>;
  /** The sum of the main diagonal of a matrix. @see {@link operations.trace} */
  trace(): Tensor<operations.SumOf<D>>;
  /** The distinct elements in ascending order. @see {@link operations.unique} */
  unique(
    options: operations.UniqueOptions & ({ returnInverse: true } | { returnCounts: true }),
  ): operations.UniqueElements<D>;
  unique(options?: operations.UniqueOptions): Tensor<D>;
  /** Runs of equal elements as one. @see {@link operations.uniqueConsecutive} */
  uniqueConsecutive(
    options: operations.UniqueOptions & ({ returnInverse: true } | { returnCounts: true }),
  ): operations.UniqueElements<D>;
  uniqueConsecutive(options?: operations.UniqueOptions): Tensor<D>;
  /** The variance and the mean over the same axes. @see {@link operations.varMean} */
  varMean(...options: AxisArguments<operations.VarianceOptions>): operations.VarianceAndMean<D>;
}

interface CoreMethods<D extends DType> {
  /**
   * Adds the gradient of this tensor to the `grad` of every leaf that requires one.
   *
   * @param gradient of this tensor's shape; may be left out where it has one element: then it is 1
   * @throws {AutogradError} where nothing requires a gradient, or the graph was freed.
   */
  backward(...options: BackwardArguments): void;
  /** The same elements without the history: a view that requires no gradient. */
  detach(): Tensor<D>;
  /**
   * The elements in another dtype; the tensor itself where it has that dtype already. @see {@link operations.toDType}
   */
  to<E extends DType>(dtype: E): Tensor<E>;
  /** The windows of so many elements along an axis: a view. @see {@link operations.slidingWindows} */
  unfold(dim: number, size: number, step: number): Tensor<D>;
}

interface Transposes<D extends DType> {
  /** A matrix with its axes swapped: a view. @throws {ShapeError} for another rank than 2; see {@link Transposes.mT} */
  readonly T: Tensor<D>;
  /** The last two axes swapped: a view. @throws {ShapeError} for a rank below 2 */
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

/** The transposes that are properties, as PyTorch has them. */
const transposes = {
  T(x: Tensor): Tensor {
    if (x.rank !== 2)
      throw new ShapeError("T", "wrongRank", `expected a matrix, got ${x.describe()}; mT or permute takes others`);
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

/** The functions that are methods, by their names. */
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
