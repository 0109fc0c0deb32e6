import { type Given, optional, parameters } from "../../core/parameters.ts";
import { dropout } from "../../ops/activation/dropout.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { probability } from "./kinds.ts";
import { Module } from "./module.ts";

/** Options of {@link Dropout}. */
export interface DropoutOptions {
  /** The probability that an element becomes 0. Default 0.5. */
  p?: number | undefined;
}

const dropoutParameters = parameters("Dropout", { p: optional(probability, 0.5) });

/**
 * Applies `dropout` in training mode: zeroes each element with probability p, and scales the others by 1 / (1 − p). In
 * evaluation mode it returns its input.
 *
 * @param p in [0, 1)
 *
 * @example
 * new Dropout(0.1).eval().forward(x); // x
 *
 * @throws {ArgumentError} for a probability out of range.
 */
export class Dropout extends Module<[x: Tensor], Tensor> {
  readonly p: number;

  constructor(...options: Given<DropoutOptions, ["p"]>);
  constructor(...values: unknown[]) {
    super();
    this.p = dropoutParameters(values).p;
  }

  /** @param x any shape @returns the same shape */
  override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  override forward(x: Tensor): Tensor;
  override forward(x: Tensor): Tensor {
    return this.p === 0 || !this.training ? x : dropout(x, { p: this.p });
  }

  /** @internal */
  override details(): string {
    return `p: ${this.p}`;
  }
}
