import type { Tensor } from "../tensor/tensor.ts";

/**
 * Counts references to the gradients of one backward pass. A gradient that the pass made itself is disposed of once
 * nothing in the pass refers to it; what a caller has seen (a hook, `grad`) or gave is left to garbage collection.
 */
export class GradientReferences {
  /** The pass's own gradients, with the number of references to each. */
  private readonly counts = new Map<Tensor, number>();

  /** Adds a tensor that the pass made to its own. Returns the tensor. */
  own<T extends Tensor>(made: T): T {
    if (!this.counts.has(made)) this.counts.set(made, 0);
    return made;
  }

  retain(gradient: Tensor): void {
    const count = this.counts.get(gradient);
    if (count !== undefined) this.counts.set(gradient, count + 1);
  }

  /** The last release disposes of the gradient. */
  release(gradient: Tensor): void {
    const count = this.counts.get(gradient);
    if (count === undefined) return;
    if (count > 1) {
      this.counts.set(gradient, count - 1);
      return;
    }
    this.counts.delete(gradient);
    if (!gradient.isKept) gradient.dispose();
  }

  /** Others may refer to it from now on: the pass no longer disposes of it. */
  disown(gradient: Tensor): void {
    this.counts.delete(gradient);
  }
}
