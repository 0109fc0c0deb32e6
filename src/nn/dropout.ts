import { dropout } from "../ops/activation/dropout.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { checkProbability } from "./checks.ts";
import { Module } from "./module.ts";

/**
 * Sets each element to 0 with a probability, and the others to x / (1 − p), while it is being trained; after `eval()` it gives back what
 * comes in.
 *
 * @param p in [0, 1)
 *
 * @example
 * new Dropout(0.1).eval().forward(x); // x
 *
 * @throws {ArgumentError} for a probability out of its range.
 */
export class Dropout extends Module<[x: Tensor], Tensor> {
  readonly p: number;

  constructor(p = 0.5) {
    super();
    this.p = checkProbability("Dropout", "p", p);
  }

  override forward(x: Tensor): Tensor {
    return this.p === 0 || !this.training ? x : dropout(x, { p: this.p });
  }

  /** @internal */
  override details(): string {
    return `p: ${this.p}`;
  }
}
