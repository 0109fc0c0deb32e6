/** Distributions of positive numbers whose densities decay as powers of x. */
import { atan, gammaincc, tan } from "../ops/index.ts";
import type { Generator } from "../random/generator.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import {
  abs,
  add,
  constant,
  digamma,
  div,
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
} from "./arithmetic.ts";
import {
  constrained,
  type DistributionOptions,
  notNegative,
  positive,
  ReparameterizedDistribution,
} from "./distribution.ts";
import type { GammaArguments } from "./gamma.ts";
import { exponential, normal } from "./noise.ts";
import type { ScaleArguments } from "./normal.ts";
import { differentiableExp } from "./portable.ts";
import { standardGamma } from "./standard_gamma.ts";

const readHalfCauchy = constrained("HalfCauchy", { scale: positive });

/**
 * The distribution of |x| for a Cauchy variable x with location 0.
 *
 * @example
 * new distributions.HalfCauchy(2).cdf(tensor(2)); // float32 0.5
 *
 * @throws {ArgumentError} unless `scale` is above 0.
 */
export class HalfCauchy extends ReparameterizedDistribution {
  readonly scale: Tensor;

  constructor(...options: ScaleArguments);
  constructor(...values: unknown[]) {
    const { scale } = readHalfCauchy(values);
    super(scale, scale.shape, [], notNegative);
    this.scale = scale;
  }

  override get mean(): Tensor {
    return constant(Number.POSITIVE_INFINITY, this.scale);
  }
  override get variance(): Tensor {
    return constant(Number.POSITIVE_INFINITY, this.scale);
  }
  override get mode(): Tensor {
    return mul(this.scale, 0);
  }

  /** The quotient of two normal variables is a Cauchy variable. */
  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const source = { dtype: this.dtype, generator };
    return mul(abs(div(normal(shape, source), normal(shape, source))), this.scale);
  }
  protected override density(value: Tensor): Tensor {
    return sub(neg(log1p(square(div(value, this.scale)))), log(mul(this.scale, Math.PI / 2)));
  }
  protected override cumulative(value: Tensor): Tensor {
    return where(gt(value, 0), mul(atan(div(value, this.scale)), 2 / Math.PI), 0);
  }
  protected override quantile(p: Tensor): Tensor {
    return mul(tan(mul(p, Math.PI / 2)), this.scale);
  }
  protected override uncertainty(): Tensor {
    return log(mul(this.scale, 2 * Math.PI));
  }
}

/** Parameters of {@link Pareto}. */
export interface ParetoParameters extends DistributionOptions {
  /** The least value, above 0. */
  scale: Value;
  /** The exponent of the tail, above 0. */
  alpha: Value;
}
/** The ways to pass a least value and an exponent. */
export type ParetoArguments =
  | [scale: Value, alpha: Value, options?: DistributionOptions]
  | [scale: Value, parameters: Omit<ParetoParameters, "scale">]
  | [parameters: ParetoParameters];

const readPareto = constrained("Pareto", { scale: positive, alpha: positive });

/**
 * The Pareto distribution: values above `scale` with density alpha · scaleᵅ / xᵅ⁺¹.
 *
 * @example
 * new distributions.Pareto(1, 2).mean; // float32 2
 *
 * @throws {ArgumentError} unless both parameters are above 0.
 */
export class Pareto extends ReparameterizedDistribution {
  readonly scale: Tensor;
  readonly alpha: Tensor;

  constructor(...options: ParetoArguments);
  constructor(...values: unknown[]) {
    const { scale, alpha } = readPareto(values);
    super(scale, scale.shape, [], positive);
    [this.scale, this.alpha] = [scale, alpha];
  }

  override get mean(): Tensor {
    const { scale, alpha } = this;
    return where(gt(alpha, 1), div(mul(alpha, scale), where(gt(alpha, 1), sub(alpha, 1), 1)), Number.POSITIVE_INFINITY);
  }
  override get variance(): Tensor {
    const { scale, alpha } = this;
    const spread = mul(square(sub(alpha, 1)), sub(alpha, 2));
    return where(
      gt(alpha, 2),
      div(mul(square(scale), alpha), where(gt(alpha, 2), spread, 1)),
      Number.POSITIVE_INFINITY,
    );
  }
  override get mode(): Tensor {
    return this.scale;
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const waiting = exponential(shape, { dtype: this.dtype, generator });
    return mul(this.scale, differentiableExp(div(waiting, this.alpha)));
  }
  protected override density(value: Tensor): Tensor {
    const { scale, alpha } = this;
    const inside = sub(add(log(alpha), mul(alpha, log(scale))), mul(add(alpha, 1), log(value)));
    return where(ge(value, scale), inside, Number.NEGATIVE_INFINITY);
  }
  protected override cumulative(value: Tensor): Tensor {
    const isInside = gt(value, this.scale);
    return where(isInside, sub(1, pow(div(this.scale, where(isInside, value, this.scale)), this.alpha)), 0);
  }
  protected override quantile(p: Tensor): Tensor {
    return mul(this.scale, pow(sub(1, p), div(-1, this.alpha)));
  }
  protected override uncertainty(): Tensor {
    return sumOf(log(div(this.scale, this.alpha)), div(1, this.alpha), 1);
  }
}

const readInverseGamma = constrained("InverseGamma", { concentration: positive, rate: positive });

/**
 * The distribution of 1 / x for a gamma variable x: density rateᵃ x⁻ᵃ⁻¹ exp(−rate / x) / Γ(a), where a is the
 * concentration.
 *
 * @example
 * new distributions.InverseGamma(3, 1).mean; // float32 0.5
 *
 * @throws {ArgumentError} unless both parameters are above 0.
 */
export class InverseGamma extends ReparameterizedDistribution {
  readonly concentration: Tensor;
  readonly rate: Tensor;

  constructor(...options: GammaArguments);
  constructor(...values: unknown[]) {
    const { concentration, rate } = readInverseGamma(values);
    super(concentration, concentration.shape, [], positive);
    [this.concentration, this.rate] = [concentration, rate];
  }

  override get mean(): Tensor {
    const { concentration: a, rate } = this;
    return where(gt(a, 1), div(rate, where(gt(a, 1), sub(a, 1), 1)), Number.POSITIVE_INFINITY);
  }
  override get variance(): Tensor {
    const { concentration: a, rate } = this;
    const spread = mul(square(sub(a, 1)), sub(a, 2));
    return where(gt(a, 2), div(square(rate), where(gt(a, 2), spread, 1)), Number.POSITIVE_INFINITY);
  }
  override get mode(): Tensor {
    return div(this.rate, add(this.concentration, 1));
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return div(this.rate, standardGamma(this.concentration, shape, { dtype: this.dtype, generator }));
  }
  protected override density(value: Tensor): Tensor {
    const { concentration: a, rate } = this;
    return sub(sub(sub(mul(a, log(rate)), mul(add(a, 1), log(value))), div(rate, value)), lgamma(a));
  }
  protected override cumulative(value: Tensor): Tensor {
    const isInside = gt(value, 0);
    return where(isInside, gammaincc(this.concentration, div(this.rate, where(isInside, value, 1))), 0);
  }
  protected override uncertainty(): Tensor {
    const { concentration: a, rate } = this;
    return sub(sumOf(a, log(rate), lgamma(a)), mul(add(a, 1), digamma(a)));
  }
}

/** Parameters of {@link FisherSnedecor}. */
export interface FisherSnedecorParameters extends DistributionOptions {
  /** The degrees of freedom of the numerator, above 0. */
  df1: Value;
  /** The degrees of freedom of the denominator, above 0. */
  df2: Value;
}
/** The ways to pass two degrees of freedom. */
export type FisherSnedecorArguments =
  | [df1: Value, df2: Value, options?: DistributionOptions]
  | [df1: Value, parameters: Omit<FisherSnedecorParameters, "df1">]
  | [parameters: FisherSnedecorParameters];

const readFisherSnedecor = constrained("FisherSnedecor", { df1: positive, df2: positive });

/**
 * The F distribution: the quotient of two chi-squared variables, each divided by its degrees of freedom.
 *
 * @example
 * new distributions.FisherSnedecor(2, 4).mean; // float32 2
 *
 * @throws {ArgumentError} unless both parameters are above 0.
 */
export class FisherSnedecor extends ReparameterizedDistribution {
  readonly df1: Tensor;
  readonly df2: Tensor;

  constructor(...options: FisherSnedecorArguments);
  constructor(...values: unknown[]) {
    const { df1, df2 } = readFisherSnedecor(values);
    super(df1, df1.shape, [], positive);
    [this.df1, this.df2] = [df1, df2];
  }

  override get mean(): Tensor {
    const { df2 } = this;
    return where(gt(df2, 2), div(df2, where(gt(df2, 2), sub(df2, 2), 1)), Number.NaN);
  }
  override get variance(): Tensor {
    const { df1, df2 } = this;
    const spread = mul(mul(df1, square(sub(df2, 2))), sub(df2, 4));
    const whole = mul(mul(square(df2), sub(add(df1, df2), 2)), 2);
    return where(gt(df2, 4), div(whole, where(gt(df2, 4), spread, 1)), Number.NaN);
  }
  override get mode(): Tensor {
    const { df1, df2 } = this;
    return where(gt(df1, 2), mul(div(sub(df1, 2), df1), div(df2, add(df2, 2))), Number.NaN);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const source = { dtype: this.dtype, generator };
    const share = (df: Tensor): Tensor => div(standardGamma(mul(df, 0.5), shape, source), df);
    return div(share(this.df1), share(this.df2));
  }
  protected override density(value: Tensor): Tensor {
    const [a, b, quotient] = [mul(this.df1, 0.5), mul(this.df2, 0.5), div(this.df1, this.df2)];
    const constants = sub(sub(lgamma(add(a, b)), lgamma(a)), lgamma(b));
    const powers = add(mul(a, log(quotient)), mul(sub(a, 1), log(value)));
    return sub(add(constants, powers), mul(add(a, b), log1p(mul(quotient, value))));
  }
}
