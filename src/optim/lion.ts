import { checkNumber, notNegative } from "../core/options.ts";
import type { Given } from "../core/parameters.ts";
import { FusedOptimizer, type FusedOptions } from "./fused.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import { checkBetas, optimizerParameters } from "./options.ts";
import { type Coefficients, noCoefficients, type RuleName } from "./rules.ts";
import type { Slot } from "./slot.ts";

/** Options of {@link Lion}. */
export interface LionOptions extends FusedOptions {
  /**
   * Decay rates of the momentum: in the update direction (β₁), and in the momentum itself (β₂). Default [0.9, 0.99].
   */
  betas: readonly [number, number];
  /** Decoupled weight decay λ: lr · λ · p is subtracted from each weight p. Default 0. */
  weightDecay: number;
}

const defaults: LionOptions = {
  lr: 1e-4,
  betas: [0.9, 0.99],
  weightDecay: 0,
  maximize: false,
  masterWeights: false,
};

const lionParameters = optimizerParameters("Lion", defaults);

/**
 * Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023) updates by the sign of the momentum. Its
 * state takes half of Adam's memory.
 *
 *     p ← p - lr (sign(β₁ m + (1 - β₁) g) + λ p),   m ← β₂ m + (1 - β₂) g
 *
 * Use a learning rate 3 to 10 times smaller than Adam's, and a weight decay larger by the same factor.
 *
 * @example
 * const optimizer = new Lion(model.parameters(), { lr: 1e-4, weightDecay: 1 });
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class Lion extends FusedOptimizer<LionOptions> {
  constructor(parameters: Parameters<LionOptions>, ...options: Given<Partial<LionOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = lionParameters(values);
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
      decoupledDecay: lr * weightDecay,
      stepSize: lr,
      oneMinusBeta1: 1 - betas[0],
      oneMinusBeta2: 1 - betas[1],
    };
  }
}
