/** Dropout of whole channels, and dropout that keeps means and variances. */
import { ShapeError } from "../core/errors.ts";
import { type Given, operand, optional, parameters, unlisted } from "../core/parameters.ts";
import { dropout } from "../ops/activation/dropout.ts";
import { ones } from "../ops/creation/full.ts";
import { add, mul } from "../ops/elementwise/arithmetic.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { DropoutOptions } from "./dropout.ts";
import { probability } from "./kinds.ts";
import { Module } from "./module.ts";

const dropoutParameters = (operation: string) => parameters(operation, { p: optional(probability, 0.5) });

/** Drops channels, of [channels, …] or [batch, channels, …] with so many axes behind. */
abstract class ChannelDropout extends Module<[x: Tensor], Tensor> {
  readonly p: number;
  readonly #axes: number;

  constructor(p: number, axes: number) {
    super();
    this.p = p;
    this.#axes = axes;
  }

  override forward(...values: [x: Tensor]): Tensor {
    const name = this.constructor.name;
    const { x } = unlisted(name, { x: operand(aTensor) })(values);
    const [least, most] = [this.#axes + 1, this.#axes + 2];
    if (x.rank !== least && x.rank !== most)
      throw new ShapeError(name, "wrongRank", `expected x to have ${least} or ${most} axes, got ${x.describe()}`);
    if (this.p === 0 || !this.training) return x;
    const channels = x.shape.slice(0, x.rank - this.#axes);
    const kept = dropout(ones([...channels, ...new Array<number>(this.#axes).fill(1)], { dtype: x.dtype }), this.p);
    return mul(x, kept);
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
export class Dropout1d extends ChannelDropout {
  constructor(...options: Given<DropoutOptions, ["p"]>);
  constructor(...values: unknown[]) {
    super(dropout1dParameters(values).p, 1);
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
export class Dropout2d extends ChannelDropout {
  constructor(...options: Given<DropoutOptions, ["p"]>);
  constructor(...values: unknown[]) {
    super(dropout2dParameters(values).p, 2);
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
export class Dropout3d extends ChannelDropout {
  constructor(...options: Given<DropoutOptions, ["p"]>);
  constructor(...values: unknown[]) {
    super(dropout3dParameters(values).p, 3);
  }
}
const dropout3dParameters = dropoutParameters("Dropout3d");

/** What SELU goes to far below 0: −scale · alpha. */
const LOWEST = -1.7580993408473766;

/**
 * Dropout for networks with SELU (Klambauer et al., "Self-Normalizing Neural Networks", 2017): elements become
 * α' = −1.758 with probability p, then all are scaled and shifted such that mean 0 and variance 1 stay.
 *
 *     y = a (x kept + α' dropped) + b,   a = 1 / √((1 − p)(1 + p α'²)),   b = −a α' p
 *
 * @example
 * new AlphaDropout(0.1).forward(randn([4, 8]));
 *
 * @throws {ArgumentError} for a probability out of range.
 */
export class AlphaDropout extends Module<[x: Tensor], Tensor> {
  readonly p: number;

  constructor(...options: Given<DropoutOptions, ["p"]>);
  constructor(...values: unknown[]) {
    super();
    this.p = alphaDropoutParameters(values).p;
  }

  override forward(...values: [x: Tensor]): Tensor {
    const { x } = unlisted("AlphaDropout", { x: operand(aTensor) })(values);
    const { p } = this;
    if (p === 0 || !this.training) return x;
    const kept: Tensor = mul(dropout(ones(x.shape, { dtype: x.dtype }), p), 1 - p);
    const scale = 1 / Math.sqrt((1 - p) * (1 + p * LOWEST ** 2));
    const shift = -scale * LOWEST * p;
    // a x kept + a α' (1 − kept) + b
    return add(mul(mul(x, kept), scale), add(mul(kept, -scale * LOWEST), scale * LOWEST + shift));
  }

  /** @internal */
  override details(): string {
    return `p: ${this.p}`;
  }
}
const alphaDropoutParameters = dropoutParameters("AlphaDropout");
