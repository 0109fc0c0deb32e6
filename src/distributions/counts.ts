import { aNumber } from "../core/kinds.ts";
import { optional, parameters, required } from "../core/parameters.ts";
import { amax, arange, gammaincc, ones, permute, reshape, scatterAdd, sum, toDType, zeros } from "../ops/index.ts";
import type { Generator } from "../random/generator.ts";
import { broadcastShapes, type Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import {
  add,
  and,
  asNumber,
  constant,
  div,
  eq,
  exp,
  expandTo,
  floor,
  ge,
  gt,
  lgamma,
  lt,
  mul,
  neg,
  sub,
  sumLast,
  type Value,
  where,
  withAxis,
  xlogy,
} from "./arithmetic.ts";
import { drawBinomial, drawPoisson } from "./count_samples.ts";
import {
  Categories,
  CategoryDistribution,
  type CategoryParameters,
  Trial,
  TrialDistribution,
  type TrialParameters,
  trialParameters,
} from "./discrete.ts";
import {
  aParameter,
  type Constraint,
  constrained,
  convertAll,
  count,
  Distribution,
  type DistributionOptions,
  notNegative,
  positive,
  readAll,
} from "./distribution.ts";
import { standardGamma } from "./standard_gamma.ts";

/** ln (n choose k) */
const logChoose = (n: Tensor, k: Tensor): Tensor =>
  sub(lgamma(add(n, 1)), add(lgamma(add(k, 1)), lgamma(add(sub(n, k), 1))));

/** Parameters of {@link Binomial}. */
export interface BinomialParameters extends TrialParameters {
  /** The number of trials, whole numbers. */
  totalCount: Value;
}
/** The ways to pass the parameters of {@link Binomial}. */
export type BinomialArguments =
  | [totalCount: Value, probs: Value, options?: DistributionOptions]
  | [totalCount: Value, parameters: TrialParameters]
  | [parameters: BinomialParameters];

const binomialParameters = parameters("Binomial", { totalCount: required(aParameter), ...trialParameters });

/** Broadcasts a count and a trial. */
function countAndTrial(
  operation: string,
  given: Value,
  trial: Trial,
  rule: Constraint,
  validateArgs: boolean,
): { readonly total: Tensor; readonly trial: Trial } {
  const { totalCount } = readAll(operation, { totalCount: given }, { totalCount: rule }, validateArgs);
  const both = convertAll({ totalCount, given: trial.given });
  const shape = broadcastShapes(operation, totalCount.shape, trial.given.shape);
  return { total: expandTo(both.totalCount, shape), trial: trial.expanded(shape) };
}

/**
 * The distribution of the number of successes in `totalCount` trials, each with probability `probs`. Samples are exact
 * up to 2²⁴ trials.
 *
 * @example
 * new distributions.Binomial(10, 0.5).variance; // float32 2.5
 *
 * @throws {ArgumentError} unless `totalCount` is a whole number of at least 0, and either `probs`, from 0 to 1, or
 * finite `logits` are given.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class Binomial extends TrialDistribution {
  readonly totalCount: Tensor;

  constructor(...options: BinomialArguments);
  constructor(...values: unknown[]) {
    const { totalCount, ...given } = binomialParameters(values);
    const read = Trial.read("Binomial", given);
    const { total, trial } = countAndTrial("Binomial", totalCount, read, count, given.validateArgs);
    super(trial, count);
    this.totalCount = total;
  }

  override get mean(): Tensor {
    return mul(this.totalCount, this.probs);
  }
  override get variance(): Tensor {
    const p = this.probs;
    return mul(mul(this.totalCount, p), sub(1, p));
  }
  override get mode(): Tensor {
    const most = floor(mul(add(this.totalCount, 1), this.probs));
    return where(gt(most, this.totalCount), this.totalCount, most);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return drawBinomial(this.totalCount, this.trial.portable, shape, { dtype: this.dtype, generator });
  }
  protected override density(value: Tensor): Tensor {
    const isInside = ge(this.totalCount, value);
    const inside = where(isInside, value, 0);
    const failures = sub(this.totalCount, inside);
    const logs = add(this.trial.times(inside), this.trial.timesOther(failures));
    return where(isInside, add(logChoose(this.totalCount, inside), logs), Number.NEGATIVE_INFINITY);
  }
  /** Sums over all counts from 0 to the largest number of trials, which takes memory for each of them. */
  protected override uncertainty(): Tensor {
    const most = Number(this.totalCount.size === 0 ? 0 : amax(this.totalCount).item());
    const counts = arange(most + 1, { dtype: this.dtype });
    const values = reshape(counts, [most + 1, ...this.batchShape.map(() => 1)]);
    const logs = this.density(values);
    const isPossible = gt(logs, Number.NEGATIVE_INFINITY);
    return neg(sum(where(isPossible, mul(exp(logs), where(isPossible, logs, 0)), 0), 0));
  }
}

/** Parameters of {@link Multinomial}. */
export interface MultinomialParameters extends CategoryParameters {
  /** The number of trials, a whole number. Default 1. */
  totalCount?: number | undefined;
}
/** The ways to pass the parameters of {@link Multinomial}. */
export type MultinomialArguments =
  | [totalCount: number, probs: Tensor, options?: DistributionOptions]
  | [totalCount: number, parameters: CategoryParameters]
  | [parameters: MultinomialParameters];

const someTrials = aNumber({
  holds: (n) => Number.isInteger(n) && n >= 0 && n <= 2 ** 24,
  expected: "a whole number from 0 to 16777216",
});
const multinomialParameters = parameters("Multinomial", {
  totalCount: optional(someTrials, 1),
  ...trialParameters,
});

/**
 * The distribution of the counts of each category in `totalCount` trials. The last axis of the parameter is the
 * categories.
 *
 * @example
 * new distributions.Multinomial(8, tensor([1, 3])).mean; // float32 [2, 6]
 *
 * @throws {ArgumentError} unless either `probs`, of at least 0, or finite `logits` are given.
 * @throws {ShapeError} if the parameter has no axis.
 */
export class Multinomial extends CategoryDistribution {
  readonly totalCount: number;

  constructor(...options: MultinomialArguments);
  constructor(...values: unknown[]) {
    const { totalCount, ...given } = multinomialParameters(values);
    const categories = Categories.read("Multinomial", given);
    super(categories, [categories.count]);
    this.totalCount = totalCount;
  }

  override get mean(): Tensor {
    return mul(this.probs, this.totalCount);
  }
  override get variance(): Tensor {
    const p = this.probs;
    return mul(mul(p, sub(1, p)), this.totalCount);
  }

  /** Counts the categories of `totalCount` draws. */
  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const outer = shape.slice(0, -1);
    if (this.totalCount === 0) return zeros(shape, { dtype: this.dtype });
    const drawn = this.categories.draw([this.totalCount, ...outer], generator);
    const total = zeros(shape, { dtype: this.dtype });
    const index = permute(drawn, [...outer.map((_, at) => at + 1), 0]);
    const one = ones(index.shape, { dtype: this.dtype });
    return scatterAdd(total, -1, toDType(index.contiguous(), "int64"), one);
  }
  protected override density(value: Tensor): Tensor {
    const isInside = and(
      eq(sumLast(value), this.totalCount),
      eq(sumLast(asNumber(count.holds(value), value)), this.categories.count),
    );
    const inside = where(expandTo(withAxis(isInside), value.shape), value, 0);
    const ways = sub(lgamma(add(sumLast(inside), 1)), sumLast(lgamma(add(inside, 1))));
    const logs = sumLast(where(eq(inside, 0), 0, mul(inside, this.logits)));
    return where(isInside, add(ways, logs), Number.NEGATIVE_INFINITY);
  }
  /** n H − ln n! + Σ E[ln kᵢ!], where the count kᵢ of a category is binomial. */
  protected override uncertainty(): Tensor {
    const of = new Binomial(this.totalCount, this.probs, { validateArgs: false });
    const counts = arange(this.totalCount + 1, { dtype: this.dtype });
    const values = reshape(counts, [this.totalCount + 1, ...this.probs.shape.map(() => 1)]);
    const factorials = sum(mul(exp(of.logProb(values)), lgamma(add(values, 1))), 0);
    const ways = lgamma(constant(this.totalCount + 1, values, []));
    return add(sub(mul(this.categories.entropy, this.totalCount), ways), sumLast(factorials));
  }
}

/** Parameters of {@link NegativeBinomial}. */
export interface NegativeBinomialParameters extends TrialParameters {
  /** The number of failures that end the trials, above 0. */
  totalCount: Value;
}
/** The ways to pass the parameters of {@link NegativeBinomial}. */
export type NegativeBinomialArguments =
  | [totalCount: Value, probs: Value, options?: DistributionOptions]
  | [totalCount: Value, parameters: TrialParameters]
  | [parameters: NegativeBinomialParameters];

const negativeBinomialParameters = parameters("NegativeBinomial", {
  totalCount: required(aParameter),
  ...trialParameters,
});
const belowCertain: Constraint = {
  expected: "at least 0 and below 1",
  holds: (x) => and(ge(x, 0), lt(x, 1)),
  inside: 0.5,
};

/**
 * The distribution of the number of successes before `totalCount` failures, for trials that succeed with probability
 * `probs`. `totalCount` need not be whole.
 *
 * @example
 * new distributions.NegativeBinomial(3, 0.5).mean; // float32 3
 *
 * @throws {ArgumentError} unless `totalCount` is above 0, and either `probs`, at least 0 and below 1, or finite
 * `logits` are given.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class NegativeBinomial extends TrialDistribution {
  readonly totalCount: Tensor;

  constructor(...options: NegativeBinomialArguments);
  constructor(...values: unknown[]) {
    const { totalCount, ...given } = negativeBinomialParameters(values);
    const read = Trial.read("NegativeBinomial", given, belowCertain);
    const { total, trial } = countAndTrial("NegativeBinomial", totalCount, read, positive, given.validateArgs);
    super(trial, count);
    this.totalCount = total;
  }

  /** p/(1 − p) */
  private get odds(): Tensor {
    return exp(this.logits);
  }
  override get mean(): Tensor {
    return mul(this.totalCount, this.odds);
  }
  override get variance(): Tensor {
    return mul(this.mean, add(this.odds, 1));
  }
  override get mode(): Tensor {
    const above = floor(mul(sub(this.totalCount, 1), this.odds));
    return where(gt(above, 0), above, constant(0, above));
  }

  /** A Poisson number whose rate is a gamma number of shape `totalCount`, times p/(1 − p). */
  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const source = { dtype: this.dtype, generator };
    const p = this.trial.portable;
    const rate = mul(standardGamma(this.totalCount, shape, source), div(p, sub(1, p)));
    return drawPoisson(rate, shape, source);
  }
  protected override density(value: Tensor): Tensor {
    const logs = add(this.trial.timesOther(this.totalCount), this.trial.times(value));
    const ways = sub(lgamma(add(this.totalCount, value)), add(lgamma(add(value, 1)), lgamma(this.totalCount)));
    return add(logs, ways);
  }
}

/** Parameters of {@link Poisson}. */
export interface PoissonParameters extends DistributionOptions {
  /** The rate, at least 0: the mean. */
  rate: Value;
}
/** The ways to pass the rate of {@link Poisson}. */
export type PoissonArguments = [rate: Value, options?: DistributionOptions] | [parameters: PoissonParameters];

const readPoisson = constrained("Poisson", { rate: notNegative });

/**
 * The Poisson distribution, of the number of events at a mean `rate`. Samples are exact up to rates of 2²⁴.
 *
 * @example
 * new distributions.Poisson(3).variance; // float32 3
 *
 * @throws {ArgumentError} unless `rate` is at least 0.
 */
export class Poisson extends Distribution {
  readonly rate: Tensor;

  constructor(...options: PoissonArguments);
  constructor(...values: unknown[]) {
    const { rate } = readPoisson(values);
    super(rate, rate.shape, [], count);
    this.rate = rate;
  }

  override get mean(): Tensor {
    return this.rate;
  }
  override get variance(): Tensor {
    return this.rate;
  }
  override get mode(): Tensor {
    return floor(this.rate);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return drawPoisson(this.rate, shape, { dtype: this.dtype, generator });
  }
  protected override density(value: Tensor): Tensor {
    return sub(sub(xlogy(value, this.rate), this.rate), lgamma(add(value, 1)));
  }
  /** Q(⌊k⌋ + 1, rate), the regularized upper incomplete gamma function. */
  protected override cumulative(value: Tensor): Tensor {
    const isInside = ge(value, 0);
    const share = gammaincc(add(floor(where(isInside, value, 0)), 1), this.rate);
    return where(isInside, share, 0);
  }
}
