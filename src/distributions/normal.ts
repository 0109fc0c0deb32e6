/** Normal distributions and their relatives. */
import { parameters, required } from "../core/parameters.ts";
import { erf, erfinv } from "../ops/index.ts";
import type { Generator } from "../random/generator.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { abs, add, div, exp, expm1, log, lt, mul, square, sub, sumOf, type Value, where } from "./arithmetic.ts";
import {
  aParameter,
  commonOptions,
  Distribution,
  type DistributionOptions,
  notNegative,
  positive,
  readAll,
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

/** @internal */
export const locationScale = { loc: required(aParameter), scale: required(aParameter), ...commonOptions } as const;

const normalParameters = parameters("Normal", locationScale);

/**
 * The normal distribution with mean `loc` and standard deviation `scale`.
 *
 * @example
 * new distributions.Normal(0, 1).logProb(tensor([0, 1])); // float32 [-0.918939, -1.418939]
 *
 * @throws {ArgumentError} unless `loc` is finite and `scale` above 0.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class Normal extends Distribution {
  readonly loc: Tensor;
  readonly scale: Tensor;

  constructor(...options: LocationScaleArguments);
  constructor(...values: unknown[]) {
    const { validateArgs, ...given } = normalParameters(values);
    const { loc, scale } = readAll("Normal", given, { loc: real, scale: positive }, validateArgs);
    super(loc, loc.shape, [], real);
    [this.loc, this.scale] = [loc, scale];
  }

  override get hasRsample(): boolean {
    return true;
  }
  override get mean(): Tensor {
    return this.loc;
  }
  override get variance(): Tensor {
    return square(this.scale);
  }
  override get mode(): Tensor {
    return this.loc;
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return add(mul(normal(shape, { dtype: this.dtype, generator }), this.scale), this.loc);
  }
  protected override density(value: Tensor): Tensor {
    return normalDensity(value, this.loc, this.scale);
  }
  protected override cumulative(value: Tensor): Tensor {
    return normalShare(div(sub(value, this.loc), this.scale));
  }
  protected override quantile(p: Tensor): Tensor {
    return add(mul(normalQuantile(p), this.scale), this.loc);
  }
  protected override uncertainty(): Tensor {
    return add(log(this.scale), 0.5 + HALF_LOG_2_PI);
  }
}

const logNormalParameters = parameters("LogNormal", locationScale);

/**
 * The distribution of e to the power of a normal number with mean `loc` and standard deviation `scale`.
 *
 * @example
 * new distributions.LogNormal(0, 1).mean; // float32 1.648721
 *
 * @throws {ArgumentError} unless `loc` is finite and `scale` above 0.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class LogNormal extends Distribution {
  readonly loc: Tensor;
  readonly scale: Tensor;

  constructor(...options: LocationScaleArguments);
  constructor(...values: unknown[]) {
    const { validateArgs, ...given } = logNormalParameters(values);
    const { loc, scale } = readAll("LogNormal", given, { loc: real, scale: positive }, validateArgs);
    super(loc, loc.shape, [], positive);
    [this.loc, this.scale] = [loc, scale];
  }

  override get hasRsample(): boolean {
    return true;
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
    return differentiableExp(add(mul(normal(shape, { dtype: this.dtype, generator }), this.scale), this.loc));
  }
  protected override density(value: Tensor): Tensor {
    const logarithm = log(value);
    return sub(normalDensity(logarithm, this.loc, this.scale), logarithm);
  }
  protected override cumulative(value: Tensor): Tensor {
    const isInside = positive.holds(value);
    const share = normalShare(div(sub(log(where(isInside, value, 1)), this.loc), this.scale));
    return where(isInside, share, 0);
  }
  protected override quantile(p: Tensor): Tensor {
    return exp(add(mul(normalQuantile(p), this.scale), this.loc));
  }
  protected override uncertainty(): Tensor {
    return sumOf(log(this.scale), this.loc, 0.5 + HALF_LOG_2_PI);
  }
}

const halfNormalParameters = parameters("HalfNormal", { scale: required(aParameter), ...commonOptions });

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
export class HalfNormal extends Distribution {
  readonly scale: Tensor;

  constructor(...options: ScaleArguments);
  constructor(...values: unknown[]) {
    const { validateArgs, ...given } = halfNormalParameters(values);
    const { scale } = readAll("HalfNormal", given, { scale: positive }, validateArgs);
    super(scale, scale.shape, [], notNegative);
    this.scale = scale;
  }

  override get hasRsample(): boolean {
    return true;
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
