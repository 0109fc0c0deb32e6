import type { Tensor } from "../tensor/tensor.ts";

/**
 * Counts references to the gradients of one backward pass. A gradient that the pass created is disposed of once nothing
 * in the pass refers to it. Gradients that a caller has seen (in a hook or `grad`) or passed in are left to garbage
 * collection.
 */
export class GradientReferences {
  /** The gradients that the pass created, with the number of references to each. */
  private readonly counts = new Map<Tensor, number>();

  /** Marks a tensor as created by the pass, and returns it. */
  adopt<T extends Tensor>(made: T): T {
    if (!this.counts.has(made)) this.counts.set(made, 0);
    return made;
  }

  retain(gradient: Tensor): void {
    const count = this.counts.get(gradient);
    if (count !== undefined) this.counts.set(gradient, count + 1);
  }

  /** Releases a reference; the last release disposes of the gradient. */
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

  /** Marks a gradient as visible outside the pass, which then does not dispose of it. */
  disown(gradient: Tensor): void {
    this.counts.delete(gradient);
  }
}
