/** Distributions that are derived from gamma distributions: Beta, Dirichlet, Student's t. */
import { lastElement } from "../core/collections.ts";
import { ShapeError } from "../core/errors.ts";
import { optional, parameters, required } from "../core/parameters.ts";
import { select, stack } from "../ops/index.ts";
import type { Generator } from "../random/generator.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import {
  add,
  and,
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
  sqrt,
  square,
  sub,
  sumLast,
  sumOf,
  type Value,
  where,
  xlog1py,
  xlogy,
} from "./arithmetic.ts";
import {
  aParameter,
  commonOptions,
  constrained,
  type DistributionOptions,
  insideUnit,
  positive,
  ReparameterizedDistribution,
  readAll,
  real,
} from "./distribution.ts";
import { normal } from "./noise.ts";
import { portableSoftmax } from "./portable.ts";
import { logStandardGamma, standardGamma } from "./standard_gamma.ts";

/** Computes ln B(a, b), the logarithm of the beta function. */
export const logBeta = (a: Tensor, b: Tensor): Tensor => sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)));

/** Parameters of {@link Beta}. */
export interface BetaParameters extends DistributionOptions {
  /** The first shape, above 0. */
  concentration1: Value;
  /** The second shape, above 0. */
  concentration0: Value;
}
/** The ways to pass the parameters of {@link Beta}. */
export type BetaArguments =
  | [concentration1: Value, concentration0: Value, options?: DistributionOptions]
  | [parameters: BetaParameters];

const readBeta = constrained("Beta", { concentration1: positive, concentration0: positive });

/**
 * The beta distribution, with a density proportional to x^(concentration1 − 1) (1 − x)^(concentration0 − 1). A sample
 * is G1/(G1 + G0) for gamma numbers of these shapes, with their implicit gradients.
 *
 * @example
 * new distributions.Beta(2, 6).mean; // float32 0.25
 *
 * @throws {ArgumentError} unless both parameters are above 0.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class Beta extends ReparameterizedDistribution {
  readonly concentration1: Tensor;
  readonly concentration0: Tensor;

  constructor(...options: BetaArguments);
  constructor(...values: unknown[]) {
    const { concentration1, concentration0 } = readBeta(values);
    super(concentration1, concentration1.shape, [], insideUnit);
    [this.concentration1, this.concentration0] = [concentration1, concentration0];
  }

  override get mean(): Tensor {
    return div(this.concentration1, add(this.concentration1, this.concentration0));
  }
  override get variance(): Tensor {
    const total = add(this.concentration1, this.concentration0);
    return div(mul(this.concentration1, this.concentration0), mul(square(total), add(total, 1)));
  }
  /** NaN unless both shapes are above 1. */
  override get mode(): Tensor {
    const { concentration1: a, concentration0: b } = this;
    return where(and(gt(a, 1), gt(b, 1)), div(sub(a, 1), sub(add(a, b), 2)), Number.NaN);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const both = stack([this.concentration1, this.concentration0], -1);
    const logs = logStandardGamma(both, [...shape, 2], { dtype: this.dtype, generator });
    return select(portableSoftmax(logs), -1, 0);
  }
  protected override density(value: Tensor): Tensor {
    const { concentration1: a, concentration0: b } = this;
    const powers = add(xlogy(sub(a, 1), value), xlog1py(sub(b, 1), neg(value)));
    return sub(powers, logBeta(a, b));
  }
  protected override uncertainty(): Tensor {
    const { concentration1: a, concentration0: b } = this;
    const total = add(a, b);
    const rest = sub(mul(sub(total, 2), digamma(total)), mul(sub(a, 1), digamma(a)));
    return sub(add(logBeta(a, b), rest), mul(sub(b, 1), digamma(b)));
  }
}

/** Parameters of {@link Dirichlet}. */
export interface DirichletParameters extends DistributionOptions {
  /** float[..., categories], above 0. */
  concentration: Tensor;
}
/** The ways to pass the parameter of {@link Dirichlet}. */
export type DirichletArguments =
  | [concentration: Tensor, options?: DistributionOptions]
  | [parameters: DirichletParameters];

const readDirichlet = constrained("Dirichlet", { concentration: positive });

/**
 * The Dirichlet distribution of vectors of positive numbers whose sum is 1. The last axis of `concentration` is the
 * event.
 *
 * @example
 * new distributions.Dirichlet(tensor([1, 3])).mean; // float32 [0.25, 0.75]
 *
 * @throws {ArgumentError} unless every concentration is above 0.
 * @throws {ShapeError} if `concentration` has no axis.
 */
export class Dirichlet extends ReparameterizedDistribution {
  readonly concentration: Tensor;

  constructor(...options: DirichletArguments);
  constructor(...values: unknown[]) {
    const { concentration } = readDirichlet(values);
    checkVector("Dirichlet", "concentration", concentration);
    super(concentration, concentration.shape.slice(0, -1), concentration.shape.slice(-1));
    this.concentration = concentration;
  }

  override get mean(): Tensor {
    return div(this.concentration, sumLast(this.concentration, 1, true));
  }
  override get variance(): Tensor {
    const total = sumLast(this.concentration, 1, true);
    const product = mul(this.concentration, sub(total, this.concentration));
    return div(product, mul(square(total), add(total, 1)));
  }
  /** NaN unless every concentration is above 1. */
  override get mode(): Tensor {
    const above = sub(this.concentration, 1);
    const total = sumLast(above, 1, true);
    const isInside = ge(sumLast(where(gt(above, 0), constant(0, above), -1), 1, true), 0);
    return where(isInside, div(above, total), Number.NaN);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return portableSoftmax(logStandardGamma(this.concentration, shape, { dtype: this.dtype, generator }));
  }
  protected override density(value: Tensor): Tensor {
    const a = this.concentration;
    return sumOf(sumLast(xlogy(sub(a, 1), value)), lgamma(sumLast(a)), neg(sumLast(lgamma(a))));
  }
  protected override uncertainty(): Tensor {
    const a = this.concentration;
    const total = sumLast(a);
    const spread = sub(sumLast(lgamma(a)), lgamma(total));
    const rest = mul(sub(total, lastElement(a.shape)), digamma(total));
    return sub(add(spread, rest), sumLast(mul(sub(a, 1), digamma(a))));
  }
}

/** @internal Throws unless a parameter has a last axis with elements. */
export function checkVector(operation: string, name: string, x: Tensor): void {
  if (x.rank >= 1 && lastElement(x.shape) > 0) return;
  throw new ShapeError(
    operation,
    "invalidShape",
    `expected ${name} to have at least one axis, with elements, got ${x.describe()}`,
  );
}

/** Parameters of {@link StudentT}. */
export interface StudentTParameters extends DistributionOptions {
  /** The degrees of freedom, above 0. */
  df: Value;
  /** The location. Default 0. */
  loc?: Value | undefined;
  /** The scale, above 0. Default 1. */
  scale?: Value | undefined;
}
/** The ways to pass the parameters of {@link StudentT}. */
export type StudentTArguments =
  | [df: Value, loc?: Value, scale?: Value, options?: DistributionOptions]
  | [df: Value, options: Omit<StudentTParameters, "df">]
  | [parameters: StudentTParameters];

const studentTParameters = parameters("StudentT", {
  df: required(aParameter),
  loc: optional(aParameter, 0),
  scale: optional(aParameter, 1),
  ...commonOptions,
});

/**
 * Student's t-distribution with `df` degrees of freedom.
 *
 * @example
 * new distributions.StudentT(4).variance; // float32 2
 *
 * @throws {ArgumentError} unless `df` and `scale` are above 0 and `loc` is finite.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class StudentT extends ReparameterizedDistribution {
  readonly df: Tensor;
  readonly loc: Tensor;
  readonly scale: Tensor;

  constructor(...options: StudentTArguments);
  constructor(...values: unknown[]) {
    const { validateArgs, ...given } = studentTParameters(values);
    const rules = { df: positive, loc: real, scale: positive };
    const { df, loc, scale } = readAll("StudentT", given, rules, validateArgs);
    super(df, df.shape, [], real);
    [this.df, this.loc, this.scale] = [df, loc, scale];
  }

  /** NaN for up to 1 degree of freedom. */
  override get mean(): Tensor {
    return where(gt(this.df, 1), this.loc, Number.NaN);
  }
  /** NaN for up to 1 degree of freedom, ∞ for up to 2. */
  override get variance(): Tensor {
    const isFinite_ = gt(this.df, 2);
    const ratio = div(this.df, sub(where(isFinite_, this.df, 3), 2));
    const variance = where(isFinite_, mul(square(this.scale), ratio), Number.POSITIVE_INFINITY);
    return where(gt(this.df, 1), variance, Number.NaN);
  }
  override get mode(): Tensor {
    return this.loc;
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const source = { dtype: this.dtype, generator };
    const x = normal(shape, source);
    const half = mul(this.df, 0.5);
    const spread = sqrt(div(standardGamma(half, shape, source), half));
    return add(mul(div(x, spread), this.scale), this.loc);
  }
  protected override density(value: Tensor): Tensor {
    const z = div(sub(value, this.loc), this.scale);
    return sub(mul(log1p(div(square(z), this.df)), mul(add(this.df, 1), -0.5)), this.normalizer());
  }
  protected override uncertainty(): Tensor {
    const above = mul(add(this.df, 1), 0.5);
    return add(this.normalizer(), mul(above, sub(digamma(above), digamma(mul(this.df, 0.5)))));
  }

  private normalizer(): Tensor {
    const logs = add(log(this.scale), mul(log(mul(this.df, Math.PI)), 0.5));
    return sub(add(logs, lgamma(mul(this.df, 0.5))), lgamma(mul(add(this.df, 1), 0.5)));
  }
}
