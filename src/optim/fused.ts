/** Optimizers whose steps are one rule for each element. */
import type { Tensor } from "../tensor/tensor.ts";
import type { LearningRate, ParameterGroup } from "./groups.ts";
import { Optimizer, type Slot, type Update } from "./optimizer.ts";
import { type Coefficients, type RuleName, ruleState } from "./rules.ts";
import { updateElements } from "./update.ts";

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

  protected override update(updates: readonly Update<Options>[]): void {
    updateElements(
      updates.map(({ slot, gradient }) => ({
        rule: this.ruleOf(slot.group),
        coefficients: this.coefficientsOf(slot),
        parameter: slot.parameter,
        gradient,
        state: slot.state,
      })),
    );
  }
}
