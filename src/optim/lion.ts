import { checkNumber, notNegative } from "../core/options.ts";
import { FusedOptimizer, type FusedOptions } from "./fused.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import type { Slot } from "./optimizer.ts";
import { checkBetas } from "./options.ts";
import { type Coefficients, noCoefficients, type RuleName } from "./rules.ts";

/** Options of {@link Lion}. */
export interface LionOptions extends FusedOptions {
  /** How much of the momentum enters a step, and how much of it stays. Default [0.9, 0.99]. */
  betas: readonly [number, number];
  /** The share of the learning rate by which a weight shrinks. Default 0. */
  weightDecay: number;
}

const defaults: LionOptions = {
  lr: 1e-4,
  betas: [0.9, 0.99],
  weightDecay: 0,
  maximize: false,
  masterWeights: false,
};

/**
 * Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023): steps of one size in the direction of the momentum's sign, half of Adam's
 * memory.
 *
 *     p ← p - lr (sign(β₁ m + (1 - β₁) g) + λ p),   m ← β₂ m + (1 - β₂) g
 *
 * Its learning rate is 3 to 10 times smaller than Adam's, its weight decay as many times larger.
 *
 * @example
 * const optimizer = new Lion(model.parameters(), { lr: 1e-4, weightDecay: 1 });
 *
 * @throws {ArgumentError} for an option or a list of parameters that is none. @throws {DTypeError} for integer parameters.
 */
export class Lion extends FusedOptimizer<LionOptions> {
  constructor(parameters: Parameters<LionOptions>, options: Partial<LionOptions> = {}) {
    super("Lion", parameters, defaults, options);
  }

  protected override checkOptions(group: ParameterGroup<LionOptions>): void {
    super.checkOptions(group);
    checkBetas(this.name, group.betas);
    checkNumber(this.name, "weightDecay", group.weightDecay, notNegative);
  }

  protected override ruleOf = (): RuleName => "lion";

  protected override coefficientsOf({ group }: Slot<LionOptions>): Coefficients {
    const { lr, betas, weightDecay, maximize } = group;
    return {
      ...noCoefficients,
      sign: maximize ? -1 : 1,
      shrink: lr * weightDecay,
      stepSize: lr,
      take1: 1 - betas[0],
      take2: 1 - betas[1],
    };
  }
}
