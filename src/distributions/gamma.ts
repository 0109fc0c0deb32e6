import { gammainc } from "../ops/index.ts";
import type { Generator } from "../random/generator.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import {
  add,
  digamma,
  div,
  exp,
  expm1,
  ge,
  gt,
  lgamma,
  log,
  log1p,
  mul,
  neg,
  pow,
  square,
  sub,
  sumOf,
  type Value,
  where,
  xlogy,
} from "./arithmetic.ts";
import {
  constrained,
  type DistributionOptions,
  notNegative,
  positive,
  ReparameterizedDistribution,
} from "./distribution.ts";
import { EULER } from "./location.ts";
import { exponential } from "./noise.ts";
import { differentiableExp, portableLog } from "./portable.ts";
import { standardGamma } from "./standard_gamma.ts";

/** Parameters of {@link Exponential}. */
export interface ExponentialParameters extends DistributionOptions {
  /** The rate, above 0: the reciprocal of the mean. */
  rate: Value;
}
/** The ways to pass a rate. */
export type RateArguments = [rate: Value, options?: DistributionOptions] | [parameters: ExponentialParameters];

const readExponential = constrained("Exponential", { rate: positive });

/**
 * The exponential distribution, with density rate · exp(−rate · x).
 *
 * @example
 * new distributions.Exponential(2).mean; // float32 0.5
 *
 * @throws {ArgumentError} unless `rate` is above 0.
 */
export class Exponential extends ReparameterizedDistribution {
  readonly rate: Tensor;

  constructor(...options: RateArguments);
  constructor(...values: unknown[]) {
    const { rate } = readExponential(values);
    super(rate, rate.shape, [], notNegative);
    this.rate = rate;
  }

  override get mean(): Tensor {
    return div(1, this.rate);
  }
  override get variance(): Tensor {
    return div(1, square(this.rate));
  }
  override get mode(): Tensor {
    return mul(this.rate, 0);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return div(exponential(shape, { dtype: this.dtype, generator }), this.rate);
  }
  protected override density(value: Tensor): Tensor {
    return sub(log(this.rate), mul(this.rate, value));
  }
  protected override cumulative(value: Tensor): Tensor {
    return neg(expm1(mul(neg(this.rate), where(gt(value, 0), value, 0))));
  }
  protected override quantile(p: Tensor): Tensor {
    return neg(div(log1p(neg(p)), this.rate));
  }
  protected override uncertainty(): Tensor {
    return sub(1, log(this.rate));
  }
}

/** Parameters of {@link Weibull}. */
export interface WeibullParameters extends DistributionOptions {
  /** The scale, above 0. */
  scale: Value;
  /** The shape, above 0. */
  concentration: Value;
}
/** The ways to pass the parameters of {@link Weibull}. */
export type WeibullArguments =
  | [scale: Value, concentration: Value, options?: DistributionOptions]
  | [parameters: WeibullParameters];

const readWeibull = constrained("Weibull", { scale: positive, concentration: positive });

/**
 * The Weibull distribution, of scale · E^(1/concentration) for an exponential number E.
 *
 * @example
 * new distributions.Weibull(1, 2).mean; // float32 0.886227
 *
 * @throws {ArgumentError} unless both parameters are above 0.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class Weibull extends ReparameterizedDistribution {
  readonly scale: Tensor;
  readonly concentration: Tensor;

  constructor(...options: WeibullArguments);
  constructor(...values: unknown[]) {
    const { scale, concentration } = readWeibull(values);
    super(scale, scale.shape, [], positive);
    [this.scale, this.concentration] = [scale, concentration];
  }

  override get mean(): Tensor {
    return mul(this.scale, exp(lgamma(add(div(1, this.concentration), 1))));
  }
  override get variance(): Tensor {
    const r = div(1, this.concentration);
    const second = exp(lgamma(add(mul(r, 2), 1)));
    return mul(square(this.scale), sub(second, exp(mul(lgamma(add(r, 1)), 2))));
  }
  override get mode(): Tensor {
    const r = div(1, this.concentration);
    return where(ge(this.concentration, 1), mul(this.scale, pow(sub(1, where(ge(r, 1), 1, r)), r)), 0);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const waiting = exponential(shape, { dtype: this.dtype, generator });
    const least = this.dtype === "float64" ? 2 ** -54 : 2 ** -25; // replaces 0, whose logarithm is −∞
    const logarithm = portableLog(where(gt(waiting, 0), waiting, least));
    return mul(this.scale, differentiableExp(div(logarithm, this.concentration)));
  }
  protected override density(value: Tensor): Tensor {
    const logarithm = log(div(value, this.scale));
    const rest = sub(log(div(this.concentration, this.scale)), exp(mul(this.concentration, logarithm)));
    return add(rest, mul(sub(this.concentration, 1), logarithm));
  }
  protected override cumulative(value: Tensor): Tensor {
    const isInside = gt(value, 0);
    const share = neg(expm1(neg(pow(div(where(isInside, value, 1), this.scale), this.concentration))));
    return where(isInside, share, 0);
  }
  protected override quantile(p: Tensor): Tensor {
    return mul(this.scale, pow(neg(log1p(neg(p))), div(1, this.concentration)));
  }
  protected override uncertainty(): Tensor {
    const r = div(1, this.concentration);
    return sumOf(mul(sub(1, r), EULER), log(mul(this.scale, r)), 1);
  }
}

/** Parameters of {@link Gamma}. */
export interface GammaParameters extends DistributionOptions {
  /** The shape, above 0. */
  concentration: Value;
  /** The rate, above 0. */
  rate: Value;
}
/** The ways to pass the parameters of {@link Gamma}. */
export type GammaArguments =
  | [concentration: Value, rate: Value, options?: DistributionOptions]
  | [parameters: GammaParameters];

const readGamma = constrained("Gamma", { concentration: positive, rate: positive });

/**
 * The gamma distribution, with a density proportional to x^(concentration − 1) exp(−rate · x). Samples have implicit
 * gradients with respect to the concentration.
 *
 * @example
 * new distributions.Gamma(3, 2).mean; // float32 1.5
 *
 * @throws {ArgumentError} unless both parameters are above 0.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class Gamma extends ReparameterizedDistribution {
  readonly concentration: Tensor;
  readonly rate: Tensor;

  constructor(...options: GammaArguments);
  /** @internal */
  constructor(...values: unknown[]);
  constructor(...values: unknown[]) {
    const { concentration, rate } = readGamma(values);
    super(concentration, concentration.shape, [], positive);
    [this.concentration, this.rate] = [concentration, rate];
  }

  override get mean(): Tensor {
    return div(this.concentration, this.rate);
  }
  override get variance(): Tensor {
    return div(this.concentration, square(this.rate));
  }
  override get mode(): Tensor {
    const above = sub(this.concentration, 1);
    return div(where(gt(above, 0), above, 0), this.rate);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return div(standardGamma(this.concentration, shape, { dtype: this.dtype, generator }), this.rate);
  }
  protected override density(value: Tensor): Tensor {
    const { concentration: a, rate } = this;
    const powers = add(mul(a, log(rate)), xlogy(sub(a, 1), value));
    return sub(sub(powers, mul(rate, value)), lgamma(a));
  }
  protected override cumulative(value: Tensor): Tensor {
    return gammainc(this.concentration, mul(this.rate, where(gt(value, 0), value, 0)));
  }
  protected override uncertainty(): Tensor {
    const { concentration: a } = this;
    return sumOf(sub(a, log(this.rate)), lgamma(a), mul(sub(1, a), digamma(a)));
  }
}

/** Parameters of {@link Chi2}. */
export interface Chi2Parameters extends DistributionOptions {
  /** The degrees of freedom, above 0. */
  df: Value;
}
/** The ways to pass the degrees of freedom. */
export type Chi2Arguments = [df: Value, options?: DistributionOptions] | [parameters: Chi2Parameters];

const readChi2 = constrained("Chi2", { df: positive });

/**
 * The chi-squared distribution, of the sum of `df` squared standard normal numbers: the gamma distribution of shape
 * df/2 and rate ½.
 *
 * @example
 * new distributions.Chi2(3).variance; // float32 6
 *
 * @throws {ArgumentError} unless `df` is above 0.
 */
export class Chi2 extends Gamma {
  readonly df: Tensor;

  constructor(...options: Chi2Arguments);
  constructor(...values: unknown[]) {
    const { df } = readChi2(values);
    super(mul(df, 0.5), 0.5, { validateArgs: false });
    this.df = df;
  }
}
