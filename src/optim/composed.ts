/** Optimizers whose step is composed of operations on one parameter at a time. */
import { toDType } from "../ops/copy/cast.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { neg } from "../ops/elementwise/arithmetic.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { LearningRate, ParameterGroup } from "./groups.ts";
import { Optimizer } from "./optimizer.ts";
import { type Slot, stateDType, type Update, withMaster } from "./slot.ts";

/** Options that all composed optimizers accept. */
export interface ComposedOptions extends LearningRate {
  /** Maximizes the loss: the sign of the gradient is flipped. Default false. */
  maximize?: boolean;
  /** Keeps a float32 copy of float16 and bfloat16 parameters. Default false. */
  masterWeights: boolean;
}

/** An optimizer that computes in float32, or in float64 for float64 parameters. */
export abstract class ComposedOptimizer<Options extends ComposedOptions> extends Optimizer<Options> {
  /** Returns the names of a parameter's state tensors besides its master weights. */
  protected abstract ownState(parameter: Tensor): readonly string[];

  /** Returns the options whose values a compiled step contains. */
  protected abstract fixedOptions(group: ParameterGroup<Options>): readonly unknown[];

  /** Updates the state of a slot, and returns the new value of its parameter p. The gradient is g. */
  protected abstract next(slot: Slot<Options>, p: Tensor, g: Tensor): Tensor;

  override stateNames({ masterWeights }: ParameterGroup<Options>, parameter: Tensor): readonly string[] {
    return withMaster(this.ownState(parameter), masterWeights, parameter);
  }

  /** @internal */
  override stepKey(): string {
    const keyOf = (group: ParameterGroup<Options>) =>
      [...this.fixedOptions(group), group.maximize, group.masterWeights].join(" ");
    return this.groups.map(keyOf).join();
  }

  protected override update(updates: readonly Update<Options>[]): void {
    for (const { slot, gradient } of updates) {
      const { parameter, state, group } = slot;
      const given: Tensor = toDType(gradient, stateDType(parameter));
      const p: Tensor = state["master"] ?? toDType(parameter, given.dtype);
      const next = this.next(slot, p, group.maximize ? neg(given) : given);
      if (state["master"]) copyInto(state["master"], next);
      copyInto(parameter, next);
    }
  }
}
