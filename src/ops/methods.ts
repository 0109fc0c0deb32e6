/**
 * Adds operations as methods: `a.add(b)` is `add(a, b)`. A function whose first operand is the tensor declares the
 * dtype of its result, as in `reshape.method = "same" as const`. The prototype's methods and their types are derived
 * from it:
 *
 * - `same`: the tensor's dtype.
 * - `parts`: the tensor's dtype, in a list of tensors.
 * - `float`: the tensor's dtype if it is a float, else float32.
 * - `bool`: bool.
 * - `truth`: bool; uint8 for uint8.
 * - `int64`: int64.
 * - `promoted`: the promoted dtype of both operands.
 * - `summed`: the tensor's dtype if it is a float, else int64; or the option `dtype`.
 * - `averaged`: the tensor's dtype, or the option `dtype`.
 * - `declared`: declared in {@link DeclaredMethods}.
 */

import { ShapeError } from "../core/errors.ts";
import type { Along, AxisArguments } from "../core/kinds.ts";
import type { Given } from "../core/parameters.ts";
import { refuseSurplus } from "../core/surplus.ts";
import type { DType, FloatDType, RealOf } from "../tensor/dtype.ts";
import type { Promote } from "../tensor/promotion.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type BackwardArguments, backward, detach } from "./gradient/backward.ts";
import * as operations from "./index.ts";
import { type InPlaceRows, inPlaceMethods } from "./inplace/methods.ts";
import { type PyTorchMethods, pytorchMethods } from "./pytorch_methods.ts";

/** Methods that are not operations, or have another name as a method. */
const core = { backward, detach, to: operations.toDType, unfold: operations.slidingWindows } as const;

type Operations = typeof operations;

/** Names of the functions of one method kind. */
type NameOf<Kind extends string> = {
  [Name in keyof Operations]: Operations[Name] extends { readonly method: Kind } ? Name : never;
}[keyof Operations];

/** The parameters after the tensor. */
type Rest<F> = F extends (x: never, ...rest: infer R) => unknown ? R : never;
type RestAfterOther<F> = F extends (x: never, other: never, ...rest: infer R) => unknown ? R : never;
/** The parameters with a required `dtype` in the options, which come last. */
type WithDType<R, E extends DType> = R extends readonly unknown[]
  ? Required<R> extends readonly [...infer First, infer Options]
    ? [...First, NonNullable<Options> & { readonly dtype: E }]
    : never
  : never;

// A mapped type keeps the functions' docstrings, which editors show.
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

/** Methods that change the tensor and return it. */
type InPlace<D extends DType> = { [Name in keyof InPlaceRows]: (...rest: Rest<InPlaceRows[Name]>) => Tensor<D> };

interface DeclaredMethods<D extends DType> {
  /** Computes xᵇ for each element, in float64. @see {@link operations.floatPower} */
  floatPower(exponent: operations.Operand): Tensor<"float64">;
  /** Returns mantissas and exponents. @see {@link operations.frexp} */
  frexp(): operations.Frexp<D>;
  /** Returns the smallest and the largest element. @see {@link operations.aminmax} */
  aminmax(options?: { dim?: number | undefined; keepdim?: boolean | undefined }): operations.Extrema<D>;
  /** Returns whether all pairs of elements are close. @see {@link operations.allClose} */
  allClose(...rest: Rest<typeof operations.allClose>): boolean;
  /** Counts the occurrences of each integer. @see {@link operations.bincount} */
  bincount(options?: operations.BincountOptions): Tensor<"int64">;
  bincount<W extends DType>(
    weights: Tensor<W>,
    ...options: Given<operations.BincountOptions, ["minlength"]>
  ): Tensor<operations.WeightedCounts<W>>;
  /** Splits an axis into at most `chunks` parts of equal size. @see {@link operations.chunk} */
  chunk<N extends number>(chunks: N, ...options: AxisArguments<operations.SplitOptions>): operations.Chunks<D, N>;
  /** Clamps each element to the bounds: min(max(x, least), most). @see {@link operations.clamp} */
  clamp(...bounds: operations.ClampArguments): Tensor;
  /** Computes the correlation coefficients of variables, which are rows. @see {@link operations.corrcoef} */
  corrcoef(): Tensor<operations.FloatOf<D>>;
  /** Computes the covariances of variables, which are rows. @see {@link operations.cov} */
  cov(options?: operations.CovarianceOptions & { readonly aweights?: undefined }): Tensor<operations.FloatOf<D>>;
  cov(options?: operations.CovarianceOptions): Tensor<FloatDType>;
  /** Computes the cumulative maximum along an axis, and its index. @see {@link operations.cummax} */
  cummax(...options: Along<operations.RunningOptions>): operations.ValuesAndIndices<D>;
  /** Computes the cumulative minimum along an axis, and its index. @see {@link operations.cummin} */
  cummin(...options: Along<operations.RunningOptions>): operations.ValuesAndIndices<D>;
  /** Returns whether the other tensor has the same shape and equal elements. @see {@link operations.equal} */
  equal(other: Tensor): boolean;
  /** Counts the elements in each interval. @see {@link operations.histogram} */
  histogram(bins: number | Tensor<D>, options?: operations.HistogramOptions): operations.Histogram<D>;
  /** Returns the k-th smallest element along an axis, and its index. @see {@link operations.kthvalue} */
  kthvalue(k: number, ...options: operations.MedianArguments): operations.ValuesAndIndices<D>;
  /** Returns the largest element; with `dim`, along that axis and with its index. @see {@link operations.max} */
  max<E extends DType>(other: Tensor<E>): Tensor<Promote<D, E>>;
  max(options?: { dim?: undefined }): Tensor<D>;
  max(...options: operations.AlongAxis): operations.ValuesAndIndices<D>;
  /** Returns the median; with `dim`, along that axis and with its index. @see {@link operations.median} */
  median(): Tensor<D>;
  median(...options: AxisArguments<operations.OrderOptions>): operations.ValuesAndIndices<D>;
  /** Returns the smallest element; with `dim`, along that axis and with its index. @see {@link operations.min} */
  min<E extends DType>(other: Tensor<E>): Tensor<Promote<D, E>>;
  min(options?: { dim?: undefined }): Tensor<D>;
  min(...options: operations.AlongAxis): operations.ValuesAndIndices<D>;
  /** Returns the most frequent element along an axis, and its index. @see {@link operations.mode} */
  mode(...options: operations.MedianArguments): operations.ValuesAndIndices<D>;
  /** Returns the median, ignoring NaN. @see {@link operations.nanmedian} */
  nanmedian(): Tensor<D>;
  nanmedian(...options: AxisArguments<operations.OrderOptions>): operations.ValuesAndIndices<D>;
  /** Sorts the elements along an axis, and returns their indices too. @see {@link operations.sort} */
  sort(...options: operations.SortArguments): operations.Sorted<D>;
  /** Splits an axis into successive parts. @see {@link operations.split} */
  split<const S extends number | readonly number[]>(
    splitSize: S,
    ...options: AxisArguments<operations.SplitOptions>
  ): operations.SplitInto<D, S>;
  /** Computes the standard deviation and the mean over the same axes. @see {@link operations.stdMean} */
  stdMean(...options: AxisArguments<operations.VarianceOptions>): operations.DeviationAndMean<D>;
  /** Returns the k largest elements along an axis, and their indices. @see {@link operations.topk} */
  topk(k: number, ...options: operations.TopkArguments): operations.Sorted<D>;
  /** Sums the main diagonal of a matrix. @see {@link operations.trace} */
  trace(): Tensor<operations.SumOf<D>>;
  /** Returns the distinct elements in ascending order. @see {@link operations.unique} */
  unique(
    options: operations.UniqueOptions & ({ returnInverse: true } | { returnCounts: true }),
  ): operations.UniqueElements<D>;
  unique(options?: operations.UniqueOptions): Tensor<D>;
  /** Collapses runs of equal elements into one. @see {@link operations.uniqueConsecutive} */
  uniqueConsecutive(
    options: operations.UniqueOptions & ({ returnInverse: true } | { returnCounts: true }),
  ): operations.UniqueElements<D>;
  uniqueConsecutive(options?: operations.UniqueOptions): Tensor<D>;
  /** Computes the variance and the mean over the same axes. @see {@link operations.varMean} */
  varMean(...options: AxisArguments<operations.VarianceOptions>): operations.VarianceAndMean<D>;
}

interface CoreMethods<D extends DType> {
  /**
   * Computes the gradient of this tensor and adds it to the `grad` of every leaf that requires one.
   *
   * @param gradient this tensor's gradient, of the same shape; default 1 if it has one element, otherwise required
   * @throws {AutogradError} if nothing requires a gradient, or the graph was freed.
   */
  backward(...options: BackwardArguments): void;
  /** Returns a view of the same elements without autograd history; it requires no gradient. */
  detach(): Tensor<D>;
  /**
   * Converts the elements to another dtype; returns the tensor itself if it already has that dtype. @see {@link
   * operations.toDType}
   */
  to<E extends DType>(dtype: E): Tensor<E>;
  /** Returns a view of the windows of `size` elements along an axis. @see {@link operations.slidingWindows} */
  unfold(dim: number, size: number, step: number): Tensor<D>;
}

interface Transposes<D extends DType> {
  /** View of a matrix with its axes swapped. @throws {ShapeError} if the rank is not 2; see {@link Transposes.mT} */
  readonly T: Tensor<D>;
  /** View with the last two axes swapped. @throws {ShapeError} if the rank is below 2 */
  readonly mT: Tensor<D>;
}

declare module "../tensor/tensor.ts" {
  interface Tensor<D extends DType>
    extends CoreMethods<D>,
      Disposable, // declared again: the compiler may check uses of the class before it knows computed names
      Transposes<D>,
      DeclaredMethods<D>,
      PyTorchMethods<D>,
      Giving<NameOf<"same">, Tensor<D>>,
      Giving<NameOf<"parts">, Tensor<D>[]>,
      Giving<NameOf<"float">, Tensor<operations.FloatOf<D>>>,
      Giving<NameOf<"real">, Tensor<RealOf<D>>>,
      Giving<NameOf<"angle">, Tensor<RealOf<operations.FloatOf<D>>>>,
      Giving<NameOf<"complex">, Tensor<operations.ComplexFrom<D>>>,
      Giving<NameOf<"bool">, Tensor<"bool">>,
      Giving<NameOf<"truth">, Tensor<operations.TruthOf<D>>>,
      Giving<NameOf<"int64">, Tensor<"int64">>,
      Promoting<NameOf<"promoted">, D>,
      Converting<NameOf<"summed">, operations.SumOf<D>>,
      Converting<NameOf<"averaged">, D>,
      InPlace<D> {}
}

/** Transposes as properties, as in PyTorch. */
const transposes = {
  T(x: Tensor): Tensor {
    if (x.rank !== 2)
      throw new ShapeError("T", "wrongRank", `expected a matrix, got ${x.describe()}; use mT or permute instead`);
    return operations.transpose(x, 0, 1);
  },
  mT(x: Tensor): Tensor {
    if (x.rank < 2)
      throw new ShapeError("mT", "wrongRank", `expected a matrix or a batch of matrices, got ${x.describe()}`);
    return operations.transpose(x, -2, -1);
  },
} as const;
// Loops are in functions, because a hot loop at the top level makes JavaScriptCore compile the whole bundle.
function methodsOf(functions: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const found: Record<string, unknown> = { ...core };
  for (const [name, value] of Object.entries(functions))
    if (typeof value === "function" && "method" in value) found[name] = value;
  return found;
}

/** All methods by name. */
export const methods: Readonly<Record<string, unknown>> = methodsOf(operations);

/** The added methods need no check of surplus arguments, since the operations check theirs. */
function addMethods(): void {
  refuseSurplus([Tensor]);
  for (const [name, transposed] of Object.entries(transposes)) {
    const get = function (this: Tensor): Tensor {
      return transposed(this);
    };
    Object.defineProperty(Tensor.prototype, name, { get, configurable: true });
  }
  for (const [name, operation] of Object.entries({ ...methods, ...inPlaceMethods, ...pytorchMethods })) {
    const call = operation as (...values: readonly unknown[]) => unknown;
    const { [name]: value } = {
      [name](this: Tensor, ...rest: readonly unknown[]): unknown {
        return call(this, ...rest);
      },
    };
    Object.defineProperty(Tensor.prototype, name, { value, writable: true, configurable: true });
  }
}

addMethods();
