/** Distributions with a location and a scale: uniform, Laplace, Cauchy, Gumbel. */
import { parameters, required } from "../core/parameters.ts";
import { atan, tan } from "../ops/index.ts";
import type { Generator } from "../random/generator.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import {
  abs,
  add,
  and,
  constant,
  div,
  exp,
  ge,
  gt,
  le,
  log,
  log1p,
  lt,
  mul,
  neg,
  sign,
  square,
  sub,
  sumOf,
  type Value,
  where,
} from "./arithmetic.ts";
import {
  aParameter,
  type Constraint,
  checkValues,
  commonOptions,
  type DistributionOptions,
  positive,
  ReparameterizedDistribution,
  readAll,
  real,
} from "./distribution.ts";
import { exponential, normal, uniform } from "./noise.ts";
import { type LocationScaleArguments, LocationScaleDistribution, locationScale } from "./normal.ts";
import { portableLog } from "./portable.ts";

/** Euler's constant γ. */
export const EULER = 0.5772156649015329;

/** Parameters of {@link Uniform}. */
export interface UniformParameters extends DistributionOptions {
  /** The lower bound, which is included. */
  low: Value;
  /** The upper bound, which is excluded. */
  high: Value;
}
/** The ways to pass the bounds of {@link Uniform}. */
export type UniformArguments =
  | [low: Value, high: Value, options?: DistributionOptions]
  | [parameters: UniformParameters];

const uniformParameters = parameters("Uniform", {
  low: required(aParameter),
  high: required(aParameter),
  ...commonOptions,
});
const aboveZero: Constraint = { ...positive, expected: "above 0, so that low < high" };

/**
 * The uniform distribution on [low, high).
 *
 * @example
 * new distributions.Uniform(0, 4).entropy(); // float32 1.386294
 *
 * @throws {ArgumentError} unless both bounds are finite and low < high.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class Uniform extends ReparameterizedDistribution {
  readonly low: Tensor;
  readonly high: Tensor;

  constructor(...options: UniformArguments);
  constructor(...values: unknown[]) {
    const { validateArgs, ...given } = uniformParameters(values);
    const { low, high } = readAll("Uniform", given, { low: real, high: real }, validateArgs);
    if (validateArgs) checkValues("Uniform", "high − low", sub(high, low), aboveZero);
    super(low, low.shape, [], real);
    [this.low, this.high] = [low, high];
  }

  override get mean(): Tensor {
    return mul(add(this.low, this.high), 0.5);
  }
  override get variance(): Tensor {
    return div(square(sub(this.high, this.low)), 12);
  }
  /** NaN, since all values have the same density. */
  override get mode(): Tensor {
    return constant(Number.NaN, this.low);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return add(mul(uniform(shape, { dtype: this.dtype, generator }), sub(this.high, this.low)), this.low);
  }
  protected override density(value: Tensor): Tensor {
    const isInside = and(ge(value, this.low), lt(value, this.high));
    return where(isInside, neg(log(sub(this.high, this.low))), Number.NEGATIVE_INFINITY);
  }
  protected override cumulative(value: Tensor): Tensor {
    const share = div(sub(value, this.low), sub(this.high, this.low));
    return where(le(share, 0), 0, where(ge(share, 1), 1, share));
  }
  protected override quantile(p: Tensor): Tensor {
    return add(mul(p, sub(this.high, this.low)), this.low);
  }
  protected override uncertainty(): Tensor {
    return log(sub(this.high, this.low));
  }
}

const readLaplace = locationScale("Laplace");

/**
 * The Laplace distribution, with density exp(−|x − loc|/scale)/(2 · scale).
 *
 * @example
 * new distributions.Laplace(0, 1).variance; // float32 2
 *
 * @throws {ArgumentError} unless `loc` is finite and `scale` above 0.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class Laplace extends LocationScaleDistribution {
  constructor(...options: LocationScaleArguments);
  constructor(...values: unknown[]) {
    super(readLaplace(values));
  }

  override get mean(): Tensor {
    return this.loc;
  }
  override get variance(): Tensor {
    return mul(square(this.scale), 2);
  }

  /** The difference of two exponential numbers has this distribution. */
  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const source = { dtype: this.dtype, generator };
    return this.placed(sub(exponential(shape, source), exponential(shape, source)));
  }
  protected override density(value: Tensor): Tensor {
    return sub(neg(div(abs(sub(value, this.loc)), this.scale)), log(mul(this.scale, 2)));
  }
  protected override cumulative(value: Tensor): Tensor {
    const z = this.standardized(value);
    const tail = mul(exp(neg(abs(z))), 0.5);
    return where(gt(z, 0), sub(1, tail), tail);
  }
  protected override quantile(p: Tensor): Tensor {
    const centered = sub(p, 0.5);
    return sub(this.loc, mul(mul(this.scale, sign(centered)), log1p(mul(abs(centered), -2))));
  }
  protected override uncertainty(): Tensor {
    return add(log(mul(this.scale, 2)), 1);
  }
}

const readCauchy = locationScale("Cauchy");

/**
 * The Cauchy distribution. It has neither a mean nor a variance; as in PyTorch, they are NaN and ∞.
 *
 * @example
 * new distributions.Cauchy(0, 1).cdf(1); // float32 0.75
 *
 * @throws {ArgumentError} unless `loc` is finite and `scale` above 0.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class Cauchy extends LocationScaleDistribution {
  constructor(...options: LocationScaleArguments);
  constructor(...values: unknown[]) {
    super(readCauchy(values));
  }

  override get mean(): Tensor {
    return constant(Number.NaN, this.loc);
  }
  override get variance(): Tensor {
    return constant(Number.POSITIVE_INFINITY, this.loc);
  }

  /** The quotient of two normal numbers has this distribution. */
  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const source = { dtype: this.dtype, generator };
    return this.placed(div(normal(shape, source), normal(shape, source)));
  }
  protected override density(value: Tensor): Tensor {
    const z = this.standardized(value);
    return sub(neg(log1p(square(z))), log(mul(this.scale, Math.PI)));
  }
  protected override cumulative(value: Tensor): Tensor {
    const z = this.standardized(value);
    return add(mul(atan(z), 1 / Math.PI), 0.5);
  }
  protected override quantile(p: Tensor): Tensor {
    return this.placed(tan(mul(sub(p, 0.5), Math.PI)));
  }
  protected override uncertainty(): Tensor {
    return log(mul(this.scale, 4 * Math.PI));
  }
}

const readGumbel = locationScale("Gumbel");

/**
 * The Gumbel distribution, of the largest of many numbers: loc − scale · ln E for an exponential number E.
 *
 * @example
 * new distributions.Gumbel(0, 1).mean; // float32 0.577216
 *
 * @throws {ArgumentError} unless `loc` is finite and `scale` above 0.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class Gumbel extends LocationScaleDistribution {
  constructor(...options: LocationScaleArguments);
  constructor(...values: unknown[]) {
    super(readGumbel(values));
  }

  override get mean(): Tensor {
    return add(this.loc, mul(this.scale, EULER));
  }
  override get variance(): Tensor {
    return mul(square(this.scale), Math.PI ** 2 / 6);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const waiting = exponential(shape, { dtype: this.dtype, generator });
    const least = this.dtype === "float64" ? 2 ** -54 : 2 ** -25; // replaces 0, whose logarithm is −∞
    return sub(this.loc, mul(portableLog(where(gt(waiting, 0), waiting, least)), this.scale));
  }
  protected override density(value: Tensor): Tensor {
    const z = this.standardized(value);
    return neg(sumOf(z, exp(neg(z)), log(this.scale)));
  }
  protected override cumulative(value: Tensor): Tensor {
    return exp(neg(exp(neg(this.standardized(value)))));
  }
  protected override quantile(p: Tensor): Tensor {
    return sub(this.loc, mul(log(neg(log(p))), this.scale));
  }
  protected override uncertainty(): Tensor {
    return add(log(this.scale), 1 + EULER);
  }
}
