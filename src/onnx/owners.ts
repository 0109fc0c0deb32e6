/** Frees the tensors that a run creates after their last use. */
import type { Tensor } from "../tensor/tensor.ts";
import type { Value } from "./call.ts";

/** Counts the references to each tensor. A step may return one of its inputs, so a tensor can have several. */
export class Owners {
  readonly #counts = new Map<Value, number>();

  has(value: Value): boolean {
    return this.#counts.has(value);
  }

  add(results: readonly Value[], made: readonly Tensor[]): void {
    for (const tensor of made) this.#counts.set(tensor, 0);
    for (const value of results) {
      const count = this.#counts.get(value);
      if (count !== undefined) this.#counts.set(value, count + 1);
    }
  }

  /** Leaves a tensor, such as one in a sequence, to the garbage collector. */
  leave(value: Value): void {
    this.#counts.delete(value);
  }

  release(value: Value): void {
    const count = this.#counts.get(value);
    if (count === undefined) return;
    if (count > 1) this.#counts.set(value, count - 1);
    else {
      this.#counts.delete(value);
      (value as Tensor).dispose();
    }
  }
}
