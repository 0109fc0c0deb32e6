/** Optimizers whose update rule is elementwise. */

import { firstBackendOf } from "../backend/dispatch.ts";
import { lastElement } from "../core/collections.ts";
import { currentCapture } from "../observe/capture.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type Batch, isBatchOf, makeBatch } from "./batch.ts";
import type { LearningRate, ParameterGroup } from "./groups.ts";
import { Optimizer } from "./optimizer.ts";
import { MAX_PARAMETERS, updateCall } from "./primitive.ts";
import { type Coefficients, type RuleName, ruleState } from "./rules.ts";
import { type Slot, type Update, withMaster } from "./slot.ts";
import { gradientDType, updateBatch, updatePrimitive } from "./update.ts";

/** Options that all fused optimizers accept. */
export interface FusedOptions extends LearningRate {
  /** Maximizes the loss: the sign of the gradient is flipped. Default false. */
  maximize: boolean;
  /**
   * Keeps a float32 copy of float16 and bfloat16 parameters, so that small updates are not lost to rounding. The
   * parameter is that copy, rounded. Costs 4 bytes per element. Default false.
   */
  masterWeights: boolean;
}

/** An optimizer with one of the rules of {@link RuleName}. One kernel call updates many parameters. */
export abstract class FusedOptimizer<Options extends FusedOptions> extends Optimizer<Options> {
  protected abstract ruleOf(group: ParameterGroup<Options>): RuleName;
  protected abstract coefficientsOf(slot: Slot<Options>): Coefficients;

  override stateNames(group: ParameterGroup<Options>, parameter: Tensor): readonly string[] {
    return withMaster(ruleState[this.ruleOf(group)], group.masterWeights, parameter);
  }

  private batches: readonly Batch[] = [];

  protected override update(updates: readonly Update<Options>[]): void {
    const byCall = Map.groupBy(updates, ({ slot, gradient }) => this.callKey(slot, gradient));
    const isOnDevice = firstBackendOf(updatePrimitive) === "metal";
    const groups = [...byCall.values()].flatMap((group) => inBatches(group, isOnDevice ? MAX_PARAMETERS : Infinity));
    const batches = groups.map((group) => {
      const slots = group.map(({ slot }) => slot);
      // On a device the whole state is written to new memory, so the call must include every member of the batch.
      const fits = (known: Batch) => isBatchOf(known, slots) && !(isOnDevice && known.starts.size > slots.length);
      const batch = this.batches.find(fits) ?? makeBatch(slots);
      const steps = group.map(({ slot, gradient }) => ({
        member: slot,
        gradient,
        coefficients: this.coefficientsOf(slot),
      }));
      currentCapture()?.live(updateCall.description.name, () => this.coefficientsFor(slots));
      updateBatch(this.name, this.ruleOf(slots[0].group), batch, steps);
      return batch;
    });
    for (const batch of this.batches) if (!batches.includes(batch)) batch.state?.dispose();
    this.batches = batches;
  }

  /** Slots of one group with equal step counts share their coefficients. */
  private coefficientsFor(slots: readonly Slot<Options>[]): Coefficients[] {
    let [before, known]: [Slot<Options> | undefined, Coefficients | undefined] = [undefined, undefined];
    return slots.map((slot) => {
      if (before?.group !== slot.group || before.steps !== slot.steps) known = this.coefficientsOf(slot);
      before = slot;
      return known!;
    });
  }

  /** @internal The inputs of a step besides its coefficients: the rule and the state of each group. */
  override stepKey(): string {
    let key = "";
    for (const group of this.groups) key += `${this.ruleOf(group)} ${group.masterWeights} `;
    return key;
  }

  /** Returns a key (rule, dtypes and state names). One call can update all parameters with the same key. */
  private callKey({ group, parameter, state }: Slot<Options>, gradient: Tensor): string {
    const dtypes = [parameter.dtype, gradientDType(gradient, parameter.dtype)];
    return [this.ruleOf(group), ...dtypes, ...Object.keys(state)].join(" ");
  }
}

/**
 * A batch with this many elements is full. The limit bounds memory, because creating the state of a batch temporarily
 * takes twice its size.
 */
const MOST_ELEMENTS = 2 ** 24;

/** Splits updates, in order, into batches of at most `mostMembers` parameters and about {@link MOST_ELEMENTS}. */
function inBatches<Options>(updates: readonly Update<Options>[], mostMembers: number): Update<Options>[][] {
  const batches: Update<Options>[][] = [];
  let elements = Infinity;
  for (const update of updates) {
    if (elements >= MOST_ELEMENTS || lastElement(batches).length === mostMembers) {
      batches.push([]);
      elements = 0;
    }
    lastElement(batches).push(update);
    elements += update.slot.parameter.size;
  }
  return batches;
}
