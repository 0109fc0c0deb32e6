/**
 * Methods that overwrite a tensor with random numbers in place. Transformed numbers (exponential, Cauchy,
 * geometric, log-normal) are computed in float64 for float64 and in float32 for other dtypes.
 */
import { ArgumentError } from "../../core/errors.ts";
import { aBigint, aNumber, either, someNumber } from "../../core/kinds.ts";
import {
  type Given,
  type Needed,
  named,
  operand,
  optional,
  type Parameters,
  type Parsed,
  required,
  unlisted,
} from "../../core/parameters.ts";
import { accumulationDType, type FloatDType, integerRange, isFloat, type RealDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { copyInto } from "../copy/copy.ts";
import { checkBroadcast, checkTarget } from "../copy/inplace.ts";
import { checkFloat, checkReal } from "../creation/create.ts";
import { add, mul, neg } from "../elementwise/arithmetic.ts";
import { div } from "../elementwise/division.ts";
import { exp } from "../elementwise/exponential.ts";
import { maximum } from "../elementwise/extrema.ts";
import { log1p } from "../elementwise/logarithm.ts";
import { ceil } from "../elementwise/rounding.ts";
import { tan } from "../elementwise/trigonometric.ts";
import { bernoulli } from "../random/bernoulli.ts";
import { aGenerator, type GeneratorOptions } from "../random/distribution.ts";
import { rand, uniform } from "../random/rand.ts";
import { randint } from "../random/randint.ts";
import { normal } from "../random/randn.ts";
import { expand } from "../view/expand.ts";

/** Options of `uniform_`: the range [from, to), default [0, 1). */
export interface UniformFilling extends GeneratorOptions {
  from?: number | undefined;
  to?: number | undefined;
}

/** Options of `normal_` (default 0 and 1) and `logNormal_` (default 1 and 2): mean and deviation of the normal. */
export interface NormalFilling extends GeneratorOptions {
  mean?: number | undefined;
  std?: number | undefined;
}

/** Options of `exponential_`: the rate λ, default 1. */
export interface ExponentialFilling extends GeneratorOptions {
  lambd?: number | undefined;
}

/** Options of `cauchy_`: median (default 0) and scale (default 1). */
export interface CauchyFilling extends GeneratorOptions {
  median?: number | undefined;
  sigma?: number | undefined;
}

/** Options of `geometric_`: the probability of success of each trial, in (0, 1). */
export interface GeometricFilling extends GeneratorOptions {
  p: number;
}

/** Options of `bernoulli_`: the probability of 1, a number (default 0.5) or a tensor that is broadcast. */
export interface BernoulliFilling extends GeneratorOptions {
  p?: number | Tensor | undefined;
}

type Bound = number | bigint;

const drawn = { generator: named(aGenerator) } as const;
const finite = aNumber({ holds: Number.isFinite, expected: "a finite number" });
const positive = aNumber({ holds: (value) => value > 0 && value < Infinity, expected: "a finite number above 0" });
const deviation = aNumber({
  holds: (value) => value >= 0 && value < Infinity,
  expected: "a finite number of at least 0",
});
const chance = aNumber({ holds: (value) => value > 0 && value < 1, expected: "a probability in (0, 1)" });
const probability = aNumber({ holds: (value) => value >= 0 && value <= 1, expected: "a probability in [0, 1]" });
const bound = either(someNumber, aBigint);

// The type is annotated, because the types of methods must not depend on their implementation.
type Filling = (x: Tensor, ...options: readonly unknown[]) => Tensor;

/** Returns the method that fills x with the tensor that `draw` returns, of any dtype and a shape that is broadcast. */
function filling<P extends Parameters>(
  operation: string,
  declared: P,
  draw: (x: Tensor, options: Parsed<P> & GeneratorOptions) => Tensor,
): Filling {
  const read = unlisted(operation, { x: operand(aTensor), ...declared, ...drawn });
  return (...values) => {
    const { x, ...options } = read(values) as { x: Tensor } & Parsed<P> & GeneratorOptions;
    checkTarget(operation, x, []);
    const fill = (): Tensor => {
      copyInto(x, draw(x, options as Parsed<P> & GeneratorOptions));
      return x;
    };
    return tidy(fill);
  };
}

function floatOf(operation: string, { dtype }: Tensor): FloatDType {
  checkFloat(operation, dtype);
  return dtype as FloatDType;
}

/**
 * Returns exponential numbers with the rate 1: −ln(1 − u) of uniform numbers u. These are multiples of 2⁻²⁴ in float32
 * and of 2⁻⁵³ in float64; half of that replaces 0, so that all results are above 0.
 */
function exponentials({ shape, dtype: given }: Tensor, { generator }: GeneratorOptions): Tensor {
  const dtype = accumulationDType(given);
  const least = dtype === "float64" ? 2 ** -54 : 2 ** -25;
  return neg(log1p(neg(maximum(rand(shape, { dtype, generator }), least))));
}

const normalParameters = (mean: number, std: number) =>
  ({ mean: optional(finite, mean), std: optional(deviation, std) }) as const;

const fillUniform: Filling = filling(
  "uniform_",
  { from: optional(finite, 0), to: optional(finite, 1) },
  (x, options) => {
    const { from, to, generator } = options;
    const dtype = floatOf("uniform_", x);
    if (from > to || !Number.isFinite(to - from))
      throw new ArgumentError("uniform_", "invalidRange", `expected from ≤ to, got ${from} and ${to}`);
    return uniform(from, to, x.shape, { dtype, generator });
  },
);

const fillNormal: Filling = filling("normal_", normalParameters(0, 1), (x, { mean, std, generator }) =>
  normal(mean, std, x.shape, { dtype: floatOf("normal_", x), generator }),
);

const fillLogNormal: Filling = filling("logNormal_", normalParameters(1, 2), (x, { mean, std, generator }) =>
  exp(normal(mean, std, x.shape, { dtype: accumulationDType(floatOf("logNormal_", x)), generator })),
);

const fillExponential: Filling = filling("exponential_", { lambd: optional(positive, 1) }, (x, options) => {
  floatOf("exponential_", x);
  return div(exponentials(x, options), options.lambd);
});

// The quantile function of the Cauchy distribution is median + sigma · tan(π (u − ½)).
const fillCauchy: Filling = filling(
  "cauchy_",
  { median: optional(finite, 0), sigma: optional(positive, 1) },
  (x, { median, sigma, generator }) => {
    const angles = uniform(-Math.PI / 2, Math.PI / 2, x.shape, {
      dtype: accumulationDType(floatOf("cauchy_", x)),
      generator,
    });
    return add(mul(tan(angles), sigma), median);
  },
);

// The smallest k with 1 − (1 − p)ᵏ ≥ u is ⌈ln(1 − u) / ln(1 − p)⌉.
const fillGeometric: Filling = filling("geometric_", { p: required(chance) }, (x, options) =>
  ceil(div(exponentials(x, options), -Math.log1p(-options.p))),
);

const fillBernoulli: Filling = filling(
  "bernoulli_",
  { p: optional(either(aTensor, probability), 0.5) },
  (x, { p, generator }) => {
    if (!Tensor.isTensor(p)) return bernoulli(p, x.shape, { dtype: x.dtype, generator });
    checkBroadcast("bernoulli_", x, p);
    checkFloat("bernoulli_", p.dtype);
    return bernoulli(expand(p, x.shape), { dtype: x.dtype, generator });
  },
);

const fillIntegers: Filling = filling(
  "random_",
  { from: optional(bound), to: optional(bound) },
  (x, { from, to, generator }) => {
    checkReal("random_", x.dtype);
    const [low, high] = to === undefined ? [0, from ?? endOf(x.dtype)] : [from ?? 0, to];
    if (!(isWhole(low) && isWhole(high) && low < high))
      throw new ArgumentError("random_", "invalidRange", `expected whole numbers from < to, got ${low} and ${high}`);
    return randint(low, high, x.shape, { dtype: x.dtype, generator });
  },
);

const isWhole = (value: Bound): boolean => typeof value === "bigint" || Number.isInteger(value);

/** One more than the largest number of `random_` without bounds: an integer dtype's largest, a float's 2ᵈ − 1. */
const endOf = (dtype: RealDType): bigint => (isFloat(dtype) ? lastWhole[dtype] : integerRange(dtype)[1]) + 1n;
const lastWhole = {
  float64: 2n ** 53n - 1n,
  float32: 2n ** 24n - 1n,
  float16: 2n ** 11n - 1n,
  bfloat16: 2n ** 8n - 1n,
};

/** The methods, each with the options that follow the tensor. */
export const randomRows = {
  /**
   * Fills the tensor with 1 with probability p, default 0.5, and 0 elsewhere. A float tensor p is broadcast.
   *
   * @throws {ArgumentError} for a number outside [0, 1].
   */
  bernoulli_: fillBernoulli as (x: Tensor, ...options: Given<BernoulliFilling, ["p"]>) => Tensor,
  /** Fills the tensor with numbers of the Cauchy distribution. @throws {DTypeError} for integers and bools. */
  cauchy_: fillCauchy as (x: Tensor, ...options: Given<CauchyFilling, ["median", "sigma"]>) => Tensor,
  /** Fills the tensor with exponential numbers of the rate `lambd`. @throws {DTypeError} for integers and bools. */
  exponential_: fillExponential as (x: Tensor, ...options: Given<ExponentialFilling, ["lambd"]>) => Tensor,
  /** Fills the tensor with the number of trials up to the first success, 1 or more. */
  geometric_: fillGeometric as (x: Tensor, ...options: Needed<GeometricFilling, "p">) => Tensor,
  /** Fills the tensor with the exponentials of normal numbers. @throws {DTypeError} for integers and bools. */
  logNormal_: fillLogNormal,
  /** Fills the tensor with normal numbers. @throws {DTypeError} for integers and bools. */
  normal_: fillNormal,
  /**
   * Fills the tensor with whole numbers in [from, to), or in [0, to) with one bound. Without bounds: up to the largest
   * number of an integer dtype, and to 2ᵈ − 1 for a float of d digits.
   */
  random_: fillIntegers as (x: Tensor, ...bounds: RandomBounds) => Tensor,
  /** Fills the tensor with uniform numbers in [from, to). @throws {DTypeError} for integers and bools. */
  uniform_: fillUniform as (x: Tensor, ...options: Given<UniformFilling, ["from", "to"]>) => Tensor,
} as const;

type RandomBounds =
  | [options?: GeneratorOptions]
  | [to: Bound, options?: GeneratorOptions]
  | [from: Bound, to: Bound, options?: GeneratorOptions];
