import { erf, erfinv } from "../ops/index.ts";
import type { Generator } from "../random/generator.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { abs, add, div, exp, expm1, log, lt, mul, square, sub, sumOf, type Value, where } from "./arithmetic.ts";
import {
  constrained,
  type DistributionOptions,
  notNegative,
  positive,
  ReparameterizedDistribution,
  real,
} from "./distribution.ts";
import { normal } from "./noise.ts";
import { differentiableExp } from "./portable.ts";

const HALF_LOG_2_PI = 0.5 * Math.log(2 * Math.PI);

/** −½z² − ln(scale) − ½ ln 2π */
const normalDensity = (value: Tensor, loc: Value, scale: Tensor): Tensor =>
  sub(sub(mul(square(div(sub(value, loc), scale)), -0.5), log(scale)), HALF_LOG_2_PI);

/** Φ(z) = (1 + erf(z/√2))/2 */
const normalShare = (z: Tensor): Tensor => mul(add(erf(mul(z, Math.SQRT1_2)), 1), 0.5);
/** Φ⁻¹(p) = √2 erf⁻¹(2p − 1) */
const normalQuantile = (p: Tensor): Tensor => mul(erfinv(sub(mul(p, 2), 1)), Math.SQRT2);

/** Parameters of distributions with a location and a scale. */
export interface LocationScaleParameters extends DistributionOptions {
  /** The location. */
  loc: Value;
  /** The scale, above 0. */
  scale: Value;
}
/** The ways to pass a location and a scale. */
export type LocationScaleArguments =
  | [loc: Value, scale: Value, options?: DistributionOptions]
  | [parameters: LocationScaleParameters];

/** @internal Declares the parameters of a distribution with a location and a scale. */
export const locationScale = (operation: string): ((values: readonly unknown[]) => LocationAndScale) =>
  constrained(operation, { loc: real, scale: positive });

interface LocationAndScale {
  readonly loc: Tensor;
  readonly scale: Tensor;
}

/** A distribution with a location and a scale. The location is the mode, unless a subclass defines another one. */
export abstract class LocationScaleDistribution extends ReparameterizedDistribution {
  readonly loc: Tensor;
  readonly scale: Tensor;

  /** @internal */
  constructor({ loc, scale }: LocationAndScale, support = real) {
    super(loc, loc.shape, [], support);
    [this.loc, this.scale] = [loc, scale];
  }

  override get mode(): Tensor {
    return this.loc;
  }

  /** @internal (x − loc)/scale */
  protected standardized(x: Tensor): Tensor {
    return div(sub(x, this.loc), this.scale);
  }
  /** @internal z · scale + loc */
  protected placed(z: Tensor): Tensor {
    return add(mul(z, this.scale), this.loc);
  }
}

const readNormal = locationScale("Normal");

/**
 * The normal distribution with mean `loc` and standard deviation `scale`.
 *
 * @example
 * new distributions.Normal(0, 1).logProb(tensor([0, 1])); // float32 [-0.918939, -1.418939]
 *
 * @throws {ArgumentError} unless `loc` is finite and `scale` above 0.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class Normal extends LocationScaleDistribution {
  constructor(...options: LocationScaleArguments);
  constructor(...values: unknown[]) {
    super(readNormal(values));
  }

  override get mean(): Tensor {
    return this.loc;
  }
  override get variance(): Tensor {
    return square(this.scale);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return this.placed(normal(shape, { dtype: this.dtype, generator }));
  }
  protected override density(value: Tensor): Tensor {
    return normalDensity(value, this.loc, this.scale);
  }
  protected override cumulative(value: Tensor): Tensor {
    return normalShare(this.standardized(value));
  }
  protected override quantile(p: Tensor): Tensor {
    return this.placed(normalQuantile(p));
  }
  protected override uncertainty(): Tensor {
    return add(log(this.scale), 0.5 + HALF_LOG_2_PI);
  }
}

const readLogNormal = locationScale("LogNormal");

/**
 * The distribution of e to the power of a normal number with mean `loc` and standard deviation `scale`.
 *
 * @example
 * new distributions.LogNormal(0, 1).mean; // float32 1.648721
 *
 * @throws {ArgumentError} unless `loc` is finite and `scale` above 0.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class LogNormal extends LocationScaleDistribution {
  constructor(...options: LocationScaleArguments);
  constructor(...values: unknown[]) {
    super(readLogNormal(values), positive);
  }

  override get mean(): Tensor {
    return exp(add(this.loc, mul(square(this.scale), 0.5)));
  }
  override get variance(): Tensor {
    const square_ = square(this.scale);
    return mul(expm1(square_), exp(add(mul(this.loc, 2), square_)));
  }
  override get mode(): Tensor {
    return exp(sub(this.loc, square(this.scale)));
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return differentiableExp(this.placed(normal(shape, { dtype: this.dtype, generator })));
  }
  protected override density(value: Tensor): Tensor {
    const logarithm = log(value);
    return sub(normalDensity(logarithm, this.loc, this.scale), logarithm);
  }
  protected override cumulative(value: Tensor): Tensor {
    const isInside = positive.holds(value);
    const share = normalShare(this.standardized(log(where(isInside, value, 1))));
    return where(isInside, share, 0);
  }
  protected override quantile(p: Tensor): Tensor {
    return exp(this.placed(normalQuantile(p)));
  }
  protected override uncertainty(): Tensor {
    return sumOf(log(this.scale), this.loc, 0.5 + HALF_LOG_2_PI);
  }
}

const readHalfNormal = constrained("HalfNormal", { scale: positive });

/** Parameters of {@link HalfNormal}. */
export interface ScaleParameters extends DistributionOptions {
  /** The scale, above 0. */
  scale: Value;
}
/** The ways to pass a scale. */
export type ScaleArguments = [scale: Value, options?: DistributionOptions] | [parameters: ScaleParameters];

/**
 * The distribution of the absolute value of a normal number with mean 0 and standard deviation `scale`.
 *
 * @example
 * new distributions.HalfNormal(1).mean; // float32 0.797885
 *
 * @throws {ArgumentError} unless `scale` is above 0.
 */
export class HalfNormal extends ReparameterizedDistribution {
  readonly scale: Tensor;

  constructor(...options: ScaleArguments);
  constructor(...values: unknown[]) {
    const { scale } = readHalfNormal(values);
    super(scale, scale.shape, [], notNegative);
    this.scale = scale;
  }

  override get mean(): Tensor {
    return mul(this.scale, Math.sqrt(2 / Math.PI));
  }
  override get variance(): Tensor {
    return mul(square(this.scale), 1 - 2 / Math.PI);
  }
  override get mode(): Tensor {
    return mul(this.scale, 0);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return mul(abs(normal(shape, { dtype: this.dtype, generator })), this.scale);
  }
  protected override density(value: Tensor): Tensor {
    return add(normalDensity(value, 0, this.scale), Math.LN2);
  }
  protected override cumulative(value: Tensor): Tensor {
    return where(lt(value, 0), 0, erf(mul(div(value, this.scale), Math.SQRT1_2)));
  }
  protected override quantile(p: Tensor): Tensor {
    return mul(mul(erfinv(p), Math.SQRT2), this.scale);
  }
  protected override uncertainty(): Tensor {
    return add(log(this.scale), 0.5 * Math.log(Math.PI / 2) + 0.5);
  }
}
