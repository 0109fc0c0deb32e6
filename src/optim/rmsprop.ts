import { belowOne, checkNumber, notNegative } from "../core/options.ts";
import type { Given } from "../core/parameters.ts";
import { FusedOptimizer, type FusedOptions } from "./fused.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import { optimizerParameters } from "./options.ts";
import { type Coefficients, noCoefficients, type RuleName } from "./rules.ts";
import type { Slot } from "./slot.ts";

/** Options of {@link RMSprop}. */
export interface RMSpropOptions extends FusedOptions {
  /** The decay rate of the average of squared gradients. Default 0.99. */
  alpha: number;
  /** Added to the denominator. Default 1e-8. */
  eps: number;
  /** The weight decay coefficient λ: λ · p is added to the gradient of p (L2 penalty). Default 0. */
  weightDecay: number;
  /** The momentum factor μ. Default 0: no momentum. */
  momentum: number;
  /** Divides by the standard deviation of gradients instead of their root mean square. Default false. */
  centered: boolean;
}

const defaults: RMSpropOptions = {
  lr: 1e-2,
  alpha: 0.99,
  eps: 1e-8,
  weightDecay: 0,
  momentum: 0,
  centered: false,
  maximize: false,
  masterWeights: false,
};

const rmspropParameters = optimizerParameters("RMSprop", defaults);

/**
 * RMSprop (Hinton, "Neural Networks for Machine Learning", lecture 6e, 2012; centered: Graves, 2013), as in PyTorch.
 * With g ← g + λ p:
 *
 *     v ← α v + (1 - α) g²,   d = g / (√v + eps),   if centered with v - m² for v, m ← α m + (1 - α) g
 *     p ← p - lr d,   with momentum b ← μ b + d, p ← p - lr b
 *
 * @example
 * const optimizer = new RMSprop(model.parameters(), { lr: 1e-3, momentum: 0.9 });
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class RMSprop extends FusedOptimizer<RMSpropOptions> {
  constructor(parameters: Parameters<RMSpropOptions>, ...options: Given<Partial<RMSpropOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = rmspropParameters(values);
    super("RMSprop", parameters, defaults, options);
  }

  protected override checkOptions(group: ParameterGroup<RMSpropOptions>): void {
    super.checkOptions(group);
    checkNumber(this.name, "alpha", group.alpha, belowOne);
    checkNumber(this.name, "eps", group.eps, notNegative);
    checkNumber(this.name, "weightDecay", group.weightDecay, notNegative);
    checkNumber(this.name, "momentum", group.momentum, notNegative);
  }

  protected override ruleOf = ({ momentum, centered }: ParameterGroup<RMSpropOptions>): RuleName =>
    centered
      ? momentum > 0
        ? "rmspropCenteredMomentum"
        : "rmspropCentered"
      : momentum > 0
        ? "rmspropMomentum"
        : "rmsprop";

  protected override coefficientsOf({ group }: Slot<RMSpropOptions>): Coefficients {
    const { lr, alpha, eps, weightDecay, momentum, maximize } = group;
    const sign = maximize ? -1 : 1;
    return { ...noCoefficients, sign, l2: weightDecay, stepSize: lr, momentum, oneMinusBeta2: 1 - alpha, eps };
  }
}
