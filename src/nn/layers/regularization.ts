/** Dropout of whole channels, and dropout that keeps means and variances. */
import { underName } from "../../backend/dispatch.ts";
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
import { called } from "./module_of.ts";

type Drop = (x: Tensor, ...options: DropoutArguments) => Tensor;

/** @internal A dropout layer. */
export interface ChannelDropout extends Module<[x: Tensor], Tensor> {
  readonly p: number;
  forward(x: Tensor): Tensor;
}

/** Makes a class that applies a dropout function in training mode. */
function dropoutOf(name: string, drop: Drop): new (...options: Given<DropoutOptions, ["p"]>) => ChannelDropout {
  const read = parameters(name, { p: optional(probability, 0.5) });
  class DropoutOf extends Module<[x: Tensor], Tensor> {
    readonly p: number;

    constructor(...options: Given<DropoutOptions, ["p"]>);
    constructor(...values: unknown[]) {
      super();
      this.p = read(values).p;
    }

    override forward(...values: [x: Tensor]): Tensor {
      const className = this.constructor.name;
      const { x } = unlisted(className, { x: operand(aTensor) })(values);
      return underName(className, () => drop(x, this.p, this.training));
    }

    /** @internal */
    override details(): string {
      return `p: ${this.p}`;
    }
  }
  return called(name, DropoutOf);
}

/**
 * Applies `dropout1d` in training mode: zeroes whole channels of x [batch, channels, length] or [channels, length] with
 * probability p, and scales the others by 1 / (1 − p).
 *
 * @example
 * new Dropout1d(0.2).forward(randn([4, 8, 10]));
 *
 * @throws {ArgumentError} for a probability out of range.
 */
export class Dropout1d extends dropoutOf("Dropout1d", dropout1d) {}

/**
 * Applies `dropout2d` in training mode, to x [batch, channels, height, width] or [channels, height, width]. See
 * {@link Dropout1d}.
 *
 * @example
 * new Dropout2d(0.2).forward(randn([4, 8, 10, 10]));
 *
 * @throws {ArgumentError} for a probability out of range.
 */
export class Dropout2d extends dropoutOf("Dropout2d", dropout2d) {}

/**
 * Applies `dropout3d` in training mode, to x [batch, channels, depth, height, width] or [channels, depth, height,
 * width]. See {@link Dropout1d}.
 *
 * @example
 * new Dropout3d(0.2).forward(randn([4, 8, 5, 10, 10]));
 *
 * @throws {ArgumentError} for a probability out of range.
 */
export class Dropout3d extends dropoutOf("Dropout3d", dropout3d) {}

/**
 * Applies `alphaDropout` in training mode, for networks with SELU: keeps mean 0 and variance 1.
 *
 * Source: G. Klambauer et al., "Self-Normalizing Neural Networks", 2017.
 *
 * @example
 * new AlphaDropout(0.1).forward(randn([4, 8]));
 *
 * @throws {ArgumentError} for a probability out of range.
 */
export class AlphaDropout extends dropoutOf("AlphaDropout", alphaDropout) {}

/**
 * Applies `featureAlphaDropout` in training mode: {@link AlphaDropout} of whole channels of x [batch, channels, …].
 *
 * @example
 * new FeatureAlphaDropout(0.1).forward(randn([4, 8, 10]));
 *
 * @throws {ArgumentError} for a probability out of range.
 */
export class FeatureAlphaDropout extends dropoutOf("FeatureAlphaDropout", featureAlphaDropout) {}
