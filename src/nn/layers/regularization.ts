/** Dropout of whole channels, and dropout that keeps means and variances. */
import { named } from "../../backend/dispatch.ts";
import { type Given, operand, optional, parameters, unlisted } from "../../core/parameters.ts";
import {
  alphaDropout,
  type DropoutArguments,
  dropout1d,
  dropout2d,
  dropout3d,
  featureAlphaDropout,
} from "../../ops/activation/channel_dropout.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { DropoutOptions } from "./dropout.ts";
import { probability } from "./kinds.ts";
import { Module } from "./module.ts";

const dropoutParameters = (operation: string) => parameters(operation, { p: optional(probability, 0.5) });

/** Runs a function of `ops` while training, under the module's name. */
abstract class DropoutOf extends Module<[x: Tensor], Tensor> {
  readonly p: number;
  readonly #drop: (x: Tensor, ...options: DropoutArguments) => Tensor;

  constructor(p: number, drop: (x: Tensor, ...options: DropoutArguments) => Tensor) {
    super();
    this.p = p;
    this.#drop = drop;
  }

  override forward(...values: [x: Tensor]): Tensor {
    const { name } = this.constructor;
    const { x } = unlisted(name, { x: operand(aTensor) })(values);
    return named(name, () => this.#drop(x, this.p, this.training));
  }

  /** @internal */
  override details(): string {
    return `p: ${this.p}`;
  }
}

/**
 * In training mode, zeroes each channel of [batch, channels, length] or [channels, length] with probability p as a
 * whole, and scales the others by 1 / (1 − p).
 *
 * @example
 * new Dropout1d(0.2).forward(randn([4, 8, 10]));
 *
 * @throws {ArgumentError} for a probability out of range.
 */
export class Dropout1d extends DropoutOf {
  constructor(...options: Given<DropoutOptions, ["p"]>);
  constructor(...values: unknown[]) {
    super(dropout1dParameters(values).p, dropout1d);
  }
}
const dropout1dParameters = dropoutParameters("Dropout1d");

/**
 * As {@link Dropout1d}, of [batch, channels, height, width] or [channels, height, width].
 *
 * @example
 * new Dropout2d(0.2).forward(randn([4, 8, 10, 10]));
 *
 * @throws {ArgumentError} for a probability out of range.
 */
export class Dropout2d extends DropoutOf {
  constructor(...options: Given<DropoutOptions, ["p"]>);
  constructor(...values: unknown[]) {
    super(dropout2dParameters(values).p, dropout2d);
  }
}
const dropout2dParameters = dropoutParameters("Dropout2d");

/**
 * As {@link Dropout1d}, of [batch, channels, depth, height, width] or [channels, depth, height, width].
 *
 * @example
 * new Dropout3d(0.2).forward(randn([4, 8, 5, 10, 10]));
 *
 * @throws {ArgumentError} for a probability out of range.
 */
export class Dropout3d extends DropoutOf {
  constructor(...options: Given<DropoutOptions, ["p"]>);
  constructor(...values: unknown[]) {
    super(dropout3dParameters(values).p, dropout3d);
  }
}
const dropout3dParameters = dropoutParameters("Dropout3d");

/**
 * Dropout for networks with SELU (Klambauer et al., "Self-Normalizing Neural Networks", 2017), which keeps mean 0 and
 * variance 1: see `alphaDropout`.
 *
 * @example
 * new AlphaDropout(0.1).forward(randn([4, 8]));
 *
 * @throws {ArgumentError} for a probability out of range.
 */
export class AlphaDropout extends DropoutOf {
  constructor(...options: Given<DropoutOptions, ["p"]>);
  constructor(...values: unknown[]) {
    super(alphaDropoutParameters(values).p, alphaDropout);
  }
}
const alphaDropoutParameters = dropoutParameters("AlphaDropout");

/**
 * {@link AlphaDropout} of whole channels of [batch, channels, …].
 *
 * @example
 * new FeatureAlphaDropout(0.1).forward(randn([4, 8, 10]));
 *
 * @throws {ArgumentError} for a probability out of range.
 */
export class FeatureAlphaDropout extends DropoutOf {
  constructor(...options: Given<DropoutOptions, ["p"]>);
  constructor(...values: unknown[]) {
    super(featureAlphaDropoutParameters(values).p, featureAlphaDropout);
  }
}
const featureAlphaDropoutParameters = dropoutParameters("FeatureAlphaDropout");
