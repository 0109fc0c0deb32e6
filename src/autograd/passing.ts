import type { Tensor } from "../tensor/tensor.ts";

/**
 * The gradients on their way in one backward pass. What the pass made itself goes back once nothing on the way needs it
 * any more; what a caller has seen (a hook, `grad`) or gave is the collector's business.
 */
export class PassingGradients {
  /** The pass's own gradients, with the number of places on the way that hold each. */
  private readonly holders = new Map<Tensor, number>();

  /** Counts a tensor that the pass made among its own. Returns the tensor. */
  own<T extends Tensor>(made: T): T {
    if (!this.holders.has(made)) this.holders.set(made, 0);
    return made;
  }

  /** A further place holds it. */
  hold(gradient: Tensor): void {
    const count = this.holders.get(gradient);
    if (count !== undefined) this.holders.set(gradient, count + 1);
  }

  /** A place lets go of it; the last one gives its memory back. */
  letGo(gradient: Tensor): void {
    const count = this.holders.get(gradient);
    if (count === undefined) return;
    if (count > 1) {
      this.holders.set(gradient, count - 1);
      return;
    }
    this.holders.delete(gradient);
    if (!gradient.isKept) gradient.dispose();
  }

  /** Somebody else may hold on to it. */
  share(gradient: Tensor): void {
    this.holders.delete(gradient);
  }
}
