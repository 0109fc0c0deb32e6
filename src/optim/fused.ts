/** Optimizers whose steps are one rule for each element. */
import { getOrMake } from "../core/collections.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type Batch, isBatchOf, MOST_PARAMETERS, makeBatch } from "./batch.ts";
import type { LearningRate, ParameterGroup } from "./groups.ts";
import { Optimizer, type Slot, type Update } from "./optimizer.ts";
import { type Coefficients, type RuleName, ruleState } from "./rules.ts";
import { gradientDType, updateBatch } from "./update.ts";

/** What all of them can do. */
export interface FusedOptions extends LearningRate {
  /** Steps uphill: the gradient's sign is changed. Default false. */
  maximize: boolean;
  /**
   * Keeps float32 values of float16 and bfloat16 parameters, to which small steps are added without loss; the parameter is their rounding. Costs 4
   * bytes an element. Default false.
   */
  masterWeights: boolean;
}

/** An optimizer with a rule of {@link ruleNames}: all parameters are updated together. */
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
    const groups = groupBy(updates, ({ slot, gradient }) => this.kindOf(slot, gradient)).flatMap(inBatches);
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

  /** What parameters have in common that one launch can update. */
  private kindOf({ group, parameter, state }: Slot<Options>, gradient: Tensor): string {
    const dtypes = [parameter.dtype, gradientDType(gradient, parameter.dtype)];
    return [this.ruleOf(group), ...dtypes, ...Object.keys(state)].join(" ");
  }
}

function groupBy<Item>(items: readonly Item[], kindOf: (item: Item) => string): Item[][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) getOrMake(groups, kindOf(item), () => []).push(item);
  return [...groups.values()];
}

const inBatches = <Item>(items: readonly Item[]): Item[][] =>
  Array.from({ length: Math.ceil(items.length / MOST_PARAMETERS) }, (_, index) =>
    items.slice(index * MOST_PARAMETERS, (index + 1) * MOST_PARAMETERS),
  );
