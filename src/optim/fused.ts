/** Optimizers whose update rule is elementwise. */

import type { Tensor } from "../tensor/tensor.ts";
import { type Batch, isBatchOf, makeBatch } from "./batch.ts";
import type { LearningRate, ParameterGroup } from "./groups.ts";
import { Optimizer } from "./optimizer.ts";
import { MAX_PARAMETERS } from "./primitive.ts";
import { type Coefficients, type RuleName, ruleState } from "./rules.ts";
import type { Slot, Update } from "./slot.ts";
import { gradientDType, updateBatch } from "./update.ts";

/** Options that all fused optimizers take. */
export interface FusedOptions extends LearningRate {
  /** Maximizes the loss: the sign of the gradient is flipped. Default false. */
  maximize: boolean;
  /**
   * Keeps a float32 copy of float16 and bfloat16 parameters, to which small updates are added without loss. The
   * parameter is that copy, rounded. Costs 4 bytes per element. Default false.
   */
  masterWeights: boolean;
}

/** An optimizer with one of the rules of {@link RuleName}. A launch updates many parameters. */
export abstract class FusedOptimizer<Options extends FusedOptions> extends Optimizer<Options> {
  protected abstract ruleOf(group: ParameterGroup<Options>): RuleName;
  protected abstract coefficientsOf(slot: Slot<Options>): Coefficients;

  override stateNames(group: ParameterGroup<Options>, parameter: Tensor): readonly string[] {
    const isHalf = parameter.dtype === "float16" || parameter.dtype === "bfloat16";
    const own = ruleState[this.ruleOf(group)];
    return group.masterWeights && isHalf ? [...own, "master"] : own;
  }

  private batches: readonly Batch[] = [];

  protected override update(updates: readonly Update<Options>[]): void {
    const byLaunch = Map.groupBy(updates, ({ slot, gradient }) => this.launchKey(slot, gradient));
    const groups = [...byLaunch.values()].flatMap(inBatches);
    const batches = groups.map((group) => {
      const slots = group.map(({ slot }) => slot);
      const batch = this.batches.find((known) => isBatchOf(known, slots)) ?? makeBatch(slots);
      const steps = group.map(({ slot, gradient }) => ({ gradient, coefficients: this.coefficientsOf(slot) }));
      updateBatch(this.name, this.ruleOf(slots[0]!.group), batch, steps);
      return batch;
    });
    for (const batch of this.batches) if (!batches.includes(batch)) batch.state?.dispose();
    this.batches = batches;
  }

  /** Parameters of one key can be updated by one launch: the same rule, dtypes and state names. */
  private launchKey({ group, parameter, state }: Slot<Options>, gradient: Tensor): string {
    const dtypes = [parameter.dtype, gradientDType(gradient, parameter.dtype)];
    return [this.ruleOf(group), ...dtypes, ...Object.keys(state)].join(" ");
  }
}

const inBatches = <Item>(items: readonly Item[]): Item[][] =>
  Array.from({ length: Math.ceil(items.length / MAX_PARAMETERS) }, (_, index) =>
    items.slice(index * MAX_PARAMETERS, (index + 1) * MAX_PARAMETERS),
  );
