/** Dropout of whole channels, and alpha dropout. */
import { underName } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import { flag } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { checkFloat } from "../creation/create.ts";
import { ones } from "../creation/full.ts";
import { add, mul } from "../elementwise/arithmetic.ts";
import { ne } from "../elementwise/comparison.ts";
import { where } from "../elementwise/where.ts";
import { aGenerator, type GeneratorOptions } from "../random/distribution.ts";
import { aProbability, type DropoutOptions, dropout } from "./dropout.ts";

const dropping = {
  x: operand(aTensor),
  p: optional(aProbability, 0.5),
  training: optional(flag, true),
  generator: named(aGenerator),
} as const;

/** Options of dropout, named or positional. */
export type DropoutArguments = Given<DropoutOptions, ["p", "training"]>;

/**
 * Sets whole channels to 0 with probability p and scales the others by 1/(1 − p): `dropout` of channels.
 *
 * @param x [batch, channels, length], or without a batch
 *
 * @example
 * dropout1d(x, 0.2);
 *
 * @throws {ShapeError} if x has an unsupported rank. @throws {ArgumentError} for a p outside [0, 1].
 * @throws {DTypeError} if x is not a float.
 */
export function dropout1d<D extends DType>(x: Tensor<D>, ...options: DropoutArguments): Tensor<D>;
export function dropout1d(...values: unknown[]): Tensor {
  return dropChannels("dropout1d", dropout1dParameters(values), 1);
}
dropout1d.method = "same" as const;
const dropout1dParameters = parameters("dropout1d", dropping);

/**
 * Drops whole channels that have two axes: see {@link dropout1d}.
 *
 * @param x [batch, channels, height, width], or without a batch
 *
 * @example
 * dropout2d(x, 0.2);
 */
export function dropout2d<D extends DType>(x: Tensor<D>, ...options: DropoutArguments): Tensor<D>;
export function dropout2d(...values: unknown[]): Tensor {
  return dropChannels("dropout2d", dropout2dParameters(values), 2);
}
dropout2d.method = "same" as const;
const dropout2dParameters = parameters("dropout2d", dropping);

/**
 * Drops whole channels that have three axes: see {@link dropout1d}.
 *
 * @param x [batch, channels, depth, height, width], or without a batch
 *
 * @example
 * dropout3d(x, 0.2);
 */
export function dropout3d<D extends DType>(x: Tensor<D>, ...options: DropoutArguments): Tensor<D>;
export function dropout3d(...values: unknown[]): Tensor {
  return dropChannels("dropout3d", dropout3dParameters(values), 3);
}
dropout3d.method = "same" as const;
const dropout3dParameters = parameters("dropout3d", dropping);

/** The parsed arguments of a call. */
interface Dropping extends GeneratorOptions {
  readonly x: Tensor;
  readonly p: number;
  readonly training: boolean;
}

function dropChannels(operation: string, { x, p, training, generator }: Dropping, axes: number): Tensor {
  checkFloat(operation, x.dtype);
  if (x.rank !== axes + 1 && x.rank !== axes + 2)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected ${axes + 2} axes, or ${axes + 1} without a batch, got ${x.describe()}`,
    );
  if (!training || p === 0) return x;
  const channels = x.shape.slice(0, x.rank - axes);
  return underName(operation, () =>
    tidy(() => mul(x, kept(x, [...channels, ...new Array<number>(axes).fill(1)], { p, generator }))),
  );
}

/** Draws 1 / (1 − p) for kept channels and 0 for dropped ones. */
const kept = (x: Tensor, shape: Shape, options: { readonly p: number } & GeneratorOptions): Tensor =>
  dropout(ones(shape, { dtype: x.dtype }), options);

/** The limit of SELU at −∞: −scale · alpha. */
const LOWEST = -1.7580993408473766;

/**
 * Computes dropout for networks with SELU: sets elements to α' = −1.758 with probability p, then scales and shifts all
 * elements so that mean 0 and variance 1 are preserved:
 *
 *     y = a (x kept + α' dropped) + b,   a = 1 / √((1 − p)(1 + p α'²)),   b = −a α' p
 *
 * With p = 1, all elements become 0.
 *
 * Source: G. Klambauer et al., "Self-Normalizing Neural Networks", 2017.
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * alphaDropout(x, 0.1);
 *
 * @throws {ArgumentError} for a p outside [0, 1]. @throws {DTypeError} if x is not a float.
 */
export function alphaDropout<D extends DType>(x: Tensor<D>, ...options: DropoutArguments): Tensor<D>;
export function alphaDropout(...values: unknown[]): Tensor {
  const given = alphaDropoutParameters(values);
  return withLowest("alphaDropout", given, given.x.shape);
}
alphaDropout.method = "same" as const;
const alphaDropoutParameters = parameters("alphaDropout", dropping);

/**
 * Computes {@link alphaDropout} of whole channels.
 *
 * @param x [batch, channels, …]
 *
 * @example
 * featureAlphaDropout(x, 0.1);
 *
 * @throws {ShapeError} if x has no channels. @throws {ArgumentError} for a p outside [0, 1]. @throws {DTypeError} if x
 * is not a float.
 */
export function featureAlphaDropout<D extends DType>(x: Tensor<D>, ...options: DropoutArguments): Tensor<D>;
export function featureAlphaDropout(...values: unknown[]): Tensor {
  const given = featureAlphaDropoutParameters(values);
  const { x } = given;
  if (!given.training) return x;
  if (x.rank < 2)
    throw new ShapeError("featureAlphaDropout", "wrongRank", `expected at least two axes, got ${x.describe()}`);
  return withLowest(
    "featureAlphaDropout",
    given,
    x.shape.map((size, axis) => (axis < 2 ? size : 1)),
  );
}
featureAlphaDropout.method = "same" as const;
const featureAlphaDropoutParameters = parameters("featureAlphaDropout", dropping);

function withLowest(operation: string, { x, p, training, generator }: Dropping, shape: Shape): Tensor {
  checkFloat(operation, x.dtype);
  if (!training || p === 0) return x;
  return underName(operation, () =>
    tidy(() => {
      if (p === 1) return mul(x, 0);
      const stays = ne(kept(x, shape, { p, generator }), 0);
      const scale = 1 / Math.sqrt((1 - p) * (1 + p * LOWEST ** 2));
      return add(mul(where(stays, x, LOWEST), scale), -scale * LOWEST * p);
    }),
  );
}
