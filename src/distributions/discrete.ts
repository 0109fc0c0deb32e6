import { lastElement } from "../core/collections.ts";
import { optional, parameters } from "../core/parameters.ts";
import {
  argmax,
  gather,
  logSigmoid,
  logSoftmax,
  multinomial,
  oneHot,
  reshape,
  softmax,
  toDType,
  unsqueeze,
} from "../ops/index.ts";
import type { Generator } from "../random/generator.ts";
import { broadcastShapes, elementCount, type Shape } from "../tensor/shape.ts";
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
  le,
  log,
  log1p,
  lt,
  mul,
  neg,
  sigmoid,
  sub,
  sumLast,
  type Value,
  where,
  xlog1py,
  xlogy,
} from "./arithmetic.ts";
import { checkVector } from "./beta.ts";
import {
  aParameter,
  type Constraint,
  checkValues,
  commonOptions,
  count,
  Distribution,
  type DistributionOptions,
  entropyOf,
  notNegative,
  oneOfTwo,
  positive,
  probability,
  readAll,
  real,
  zeroOrOne,
} from "./distribution.ts";
import { exponential, uniform } from "./noise.ts";
import { portableExp, portableLog1p, portableSigmoid } from "./portable.ts";

/** Parameters of distributions of trials: either `probs` or `logits`. */
export interface TrialParameters extends DistributionOptions {
  /** Probabilities. */
  probs?: Value | undefined;
  /** Logits: ln(p/(1 − p)) for trials, ln p + constant for categories. */
  logits?: Value | undefined;
}
/** The ways to pass probabilities. */
export type TrialArguments = [probs: Value, options?: DistributionOptions] | [parameters: TrialParameters];

/** @internal */
export const trialParameters = {
  probs: optional(aParameter),
  logits: optional(aParameter),
  ...commonOptions,
} as const;

/** @internal The probability of a trial, from either parameter. */
export class Trial {
  private constructor(
    readonly given: Tensor,
    private readonly isLogits: boolean,
  ) {}

  static read(
    operation: string,
    { probs, logits, validateArgs }: { probs?: Value | undefined; logits?: Value | undefined; validateArgs: boolean },
    rule: Constraint = probability,
  ): Trial {
    oneOfTwo(operation, ["probs", "logits"], probs, logits);
    if (probs !== undefined)
      return new Trial(readAll(operation, { probs }, { probs: rule }, validateArgs).probs, false);
    return new Trial(readAll(operation, { logits: logits! }, { logits: real }, validateArgs).logits, true);
  }

  /** Returns the same trial for a larger batch. */
  expanded(shape: Shape): Trial {
    return new Trial(expandTo(this.given, shape), this.isLogits);
  }

  get probs(): Tensor {
    return this.isLogits ? sigmoid(this.given) : this.given;
  }
  /** ln p − ln(1 − p) */
  get logits(): Tensor {
    return this.isLogits ? this.given : sub(log(this.given), log1p(neg(this.given)));
  }
  /** x ln p */
  times(x: Tensor): Tensor {
    return this.isLogits ? mul(x, logSigmoid(this.given)) : xlogy(x, this.given);
  }
  /** x ln(1 − p) */
  timesOther(x: Tensor): Tensor {
    return this.isLogits ? mul(x, logSigmoid(neg(this.given))) : xlog1py(x, neg(this.given));
  }
  /** The probabilities for drawing samples, which are bitwise the same on every backend. */
  get portable(): Tensor {
    return this.isLogits ? portableSigmoid(this.given) : this.given;
  }
  /** p ln p + (1 − p) ln(1 − p), negated */
  get entropy(): Tensor {
    const p = this.probs;
    return neg(add(this.times(p), this.timesOther(sub(1, p))));
  }
}

/** A distribution of trials, each with the same probability of success. */
export abstract class TrialDistribution extends Distribution {
  /** @internal */ protected readonly trial: Trial;

  /** @internal */
  constructor(trial: Trial, support: Constraint) {
    super(trial.given, trial.given.shape, [], support);
    this.trial = trial;
  }

  get probs(): Tensor {
    return this.trial.probs;
  }
  get logits(): Tensor {
    return this.trial.logits;
  }
}

const bernoulliParameters = parameters("Bernoulli", trialParameters);

/**
 * The distribution of 1 with probability `probs`, and of 0 otherwise.
 *
 * @example
 * new distributions.Bernoulli(0.25).variance; // float32 0.1875
 * new distributions.Bernoulli({ logits: 0 }).mean; // float32 0.5
 *
 * @throws {ArgumentError} unless either `probs`, from 0 to 1, or finite `logits` are given.
 */
export class Bernoulli extends TrialDistribution {
  constructor(...options: TrialArguments);
  constructor(...values: unknown[]) {
    super(Trial.read("Bernoulli", bernoulliParameters(values)), zeroOrOne);
  }

  override get mean(): Tensor {
    return this.probs;
  }
  override get variance(): Tensor {
    const p = this.probs;
    return mul(p, sub(1, p));
  }
  /** NaN where both values are equally probable. */
  override get mode(): Tensor {
    const p = this.probs;
    return where(gt(p, 0.5), 1, where(lt(p, 0.5), constant(0, p), Number.NaN));
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const p = this.trial.portable;
    return asNumber(lt(uniform(shape, { dtype: this.dtype, generator }), p), p);
  }
  protected override density(value: Tensor): Tensor {
    return add(this.trial.times(value), this.trial.timesOther(sub(1, value)));
  }
  protected override cumulative(value: Tensor): Tensor {
    return where(lt(value, 0), 0, where(ge(value, 1), 1, sub(1, this.probs)));
  }
  protected override uncertainty(): Tensor {
    return this.trial.entropy;
  }
}

const geometricParameters = parameters("Geometric", trialParameters);
const someChance: Constraint = {
  expected: "above 0 and at most 1",
  holds: (x) => and(gt(x, 0), le(x, 1)),
  inside: 0.5,
};

/**
 * The distribution of the number of failures before the first success, for trials that succeed with probability
 * `probs`.
 *
 * @example
 * new distributions.Geometric(0.25).mean; // float32 3
 *
 * @throws {ArgumentError} unless either `probs`, above 0 and at most 1, or finite `logits` are given.
 */
export class Geometric extends TrialDistribution {
  constructor(...options: TrialArguments);
  constructor(...values: unknown[]) {
    super(Trial.read("Geometric", geometricParameters(values), someChance), count);
  }

  override get mean(): Tensor {
    return sub(div(1, this.probs), 1);
  }
  override get variance(): Tensor {
    const r = div(1, this.probs);
    return mul(sub(r, 1), r);
  }
  override get mode(): Tensor {
    return mul(this.trial.given, 0);
  }

  /** Inverts the distribution function: ⌊E / −ln(1 − p)⌋ for an exponential number E. */
  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const p = this.trial.portable;
    const isCertain = ge(p, 1);
    const rate = neg(portableLog1p(neg(where(isCertain, 0.5, p))));
    return where(isCertain, 0, floor(div(exponential(shape, { dtype: this.dtype, generator }), rate)));
  }
  protected override density(value: Tensor): Tensor {
    return add(this.trial.timesOther(value), this.trial.times(constant(1, value)));
  }
  protected override cumulative(value: Tensor): Tensor {
    const trials = add(floor(where(lt(value, 0), -1, value)), 1);
    return sub(1, exp(this.trial.timesOther(trials)));
  }
  protected override uncertainty(): Tensor {
    return div(this.trial.entropy, this.probs);
  }
}

/** Parameters of {@link Categorical}: either `probs` or `logits`. */
export interface CategoryParameters extends DistributionOptions {
  /** float[..., categories] of at least 0. They are divided by their sum. */
  probs?: Tensor | undefined;
  /** float[..., categories], the logarithms of probabilities up to a constant. */
  logits?: Tensor | undefined;
}
/** The ways to pass the probabilities of categories. */
export type CategoryArguments = [probs: Tensor, options?: DistributionOptions] | [parameters: CategoryParameters];

/** @internal The probabilities of categories, from either parameter. */
export class Categories {
  private constructor(
    readonly given: Tensor,
    private readonly isLogits: boolean,
  ) {}

  static read(
    operation: string,
    { probs, logits, validateArgs }: { probs?: Value | undefined; logits?: Value | undefined; validateArgs: boolean },
  ): Categories {
    oneOfTwo(operation, ["probs", "logits"], probs, logits);
    const isLogits = probs === undefined;
    const name = isLogits ? "logits" : "probs";
    const rule = isLogits ? real : notNegative;
    const read = readAll(operation, { [name]: isLogits ? logits! : probs }, { [name]: rule }, validateArgs)[name];
    checkVector(operation, name, read);
    if (!isLogits && validateArgs) checkValues(operation, "the sum of probs", sumLast(read), positive);
    return new Categories(read, isLogits);
  }

  get count(): number {
    return lastElement(this.given.shape);
  }
  get batchShape(): Shape {
    return this.given.shape.slice(0, -1);
  }
  get probs(): Tensor {
    return this.isLogits ? softmax(this.given, -1) : div(this.given, sumLast(this.given, 1, true));
  }
  get logits(): Tensor {
    return this.isLogits ? logSoftmax(this.given, -1) : log(this.probs);
  }
  get entropy(): Tensor {
    if (!this.isLogits) return sumLast(entropyOf(this.probs));
    return neg(sumLast(mul(this.probs, this.logits)));
  }

  /** Draws int64 indices of shape `[...shape, ...batchShape]`. */
  draw(shape: Shape, generator: Generator | undefined): Tensor {
    const weights = this.isLogits ? portableWeights(this.given) : this.given;
    const rows = elementCount(this.batchShape);
    const samples = elementCount(shape.slice(0, shape.length - this.batchShape.length));
    if (rows === 0 || samples === 0) return toDType(constant(0, weights, shape), "int64");
    const options = { replacement: true, ...(generator && { generator }) };
    const drawn = multinomial(reshape(weights, [rows, this.count]), samples, options);
    return reshape(drawn.T.contiguous(), [...shape]);
  }
}

/** Returns weights proportional to eˣ, bitwise the same on every backend. */
const portableWeights = (logits: Tensor): Tensor => portableExp(sub(logits, logits.amax(-1, true)));

/** A distribution of categories with given probabilities. */
export abstract class CategoryDistribution extends Distribution {
  /** @internal */ protected readonly categories: Categories;

  /** @internal */
  constructor(categories: Categories, eventShape: Shape, support?: Constraint) {
    super(categories.given, categories.batchShape, eventShape, support);
    this.categories = categories;
  }

  get probs(): Tensor {
    return this.categories.probs;
  }
  /** The logarithms of the probabilities. */
  get logits(): Tensor {
    return this.categories.logits;
  }
}

const categoricalParameters = parameters("Categorical", trialParameters);

/**
 * The distribution of the indices of categories, as int64. The last axis of the parameter is the categories.
 *
 * @example
 * new distributions.Categorical(tensor([1, 3])).logProb(tensor([1n])); // float32 [-0.287682]
 *
 * @throws {ArgumentError} unless either `probs`, of at least 0, or finite `logits` are given.
 * @throws {ShapeError} if the parameter has no axis.
 */
export class Categorical extends CategoryDistribution {
  constructor(...options: CategoryArguments);
  constructor(...values: unknown[]) {
    const categories = Categories.read("Categorical", categoricalParameters(values));
    const most = categories.count - 1;
    super(categories, [], {
      expected: `whole numbers from 0 to ${most}`,
      holds: (x) => and(count.holds(x), le(x, most)),
      inside: 0,
    });
  }

  override get mean(): Tensor {
    return constant(Number.NaN, this.categories.given, this.batchShape);
  }
  override get variance(): Tensor {
    return constant(Number.NaN, this.categories.given, this.batchShape);
  }
  override get mode(): Tensor {
    return argmax(this.categories.given, -1);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return this.categories.draw(shape, generator);
  }
  protected override density(value: Tensor): Tensor {
    const full = broadcastShapes("Categorical.logProb", value.shape, this.batchShape);
    const logits = expandTo(this.logits, [...full, this.categories.count]);
    const index = unsqueeze(toDType(expandTo(value, full), "int64"), -1);
    return reshape(gather(logits, -1, index.contiguous()), full);
  }
  protected override uncertainty(): Tensor {
    return this.categories.entropy;
  }
}

const oneHotParameters = parameters("OneHotCategorical", trialParameters);
const oneHotRow: Constraint = { ...zeroOrOne, expected: "0 or 1" };

/**
 * The distribution of categories as vectors with one 1. The last axis of the parameter is the categories.
 *
 * @example
 * new distributions.OneHotCategorical(tensor([1, 3])).mean; // float32 [0.25, 0.75]
 *
 * @throws {ArgumentError} unless either `probs`, of at least 0, or finite `logits` are given.
 * @throws {ShapeError} if the parameter has no axis.
 */
export class OneHotCategorical extends CategoryDistribution {
  constructor(...options: CategoryArguments);
  constructor(...values: unknown[]) {
    const categories = Categories.read("OneHotCategorical", oneHotParameters(values));
    super(categories, [categories.count]);
  }

  override get mean(): Tensor {
    return this.probs;
  }
  override get variance(): Tensor {
    const p = this.probs;
    return mul(p, sub(1, p));
  }
  override get mode(): Tensor {
    return this.vectors(argmax(this.categories.given, -1));
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return this.vectors(this.categories.draw(shape.slice(0, -1), generator));
  }
  /** The logarithm of the probability of the 1's category; −∞ for other vectors. */
  protected override density(value: Tensor): Tensor {
    const isVector = and(
      eq(sumLast(value), 1),
      eq(sumLast(asNumber(oneHotRow.holds(value), value)), this.categories.count),
    );
    return where(isVector, sumLast(where(eq(value, 0), 0, this.logits)), Number.NEGATIVE_INFINITY);
  }
  protected override uncertainty(): Tensor {
    return this.categories.entropy;
  }

  private vectors(index: Tensor): Tensor {
    return toDType(oneHot(toDType(index, "int64"), this.categories.count), this.dtype);
  }
}
