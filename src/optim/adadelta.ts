import { checkNumber, notNegative } from "../core/options.ts";
import type { Given } from "../core/parameters.ts";
import { FusedOptimizer, type FusedOptions } from "./fused.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import { optimizerParameters } from "./options.ts";
import { type Coefficients, noCoefficients, type RuleName } from "./rules.ts";
import type { Slot } from "./slot.ts";

/** Options of {@link Adadelta}. */
export interface AdadeltaOptions extends FusedOptions {
  /** The decay rate ρ of the averages of squared gradients and squared steps. Default 0.9. */
  rho: number;
  /** Added under both square roots. Default 1e-6. */
  eps: number;
  /** The weight decay coefficient λ: λ · p is added to the gradient of p (L2 penalty). Default 0. */
  weightDecay: number;
}

const defaults: AdadeltaOptions = {
  lr: 1,
  rho: 0.9,
  eps: 1e-6,
  weightDecay: 0,
  maximize: false,
  masterWeights: false,
};

const adadeltaParameters = optimizerParameters("Adadelta", defaults);

/**
 * Adadelta (Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012), as in PyTorch. With g ← g + λ p:
 *
 *     v ← ρ v + (1 - ρ) g²,   d = √(u + eps) / √(v + eps) g,   u ← ρ u + (1 - ρ) d²,   p ← p - lr d
 *
 * @example
 * const optimizer = new Adadelta(model.parameters());
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class Adadelta extends FusedOptimizer<AdadeltaOptions> {
  constructor(parameters: Parameters<AdadeltaOptions>, ...options: Given<Partial<AdadeltaOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = adadeltaParameters(values);
    super("Adadelta", parameters, defaults, options);
  }

  protected override checkOptions(group: ParameterGroup<AdadeltaOptions>): void {
    super.checkOptions(group);
    checkNumber(this.name, "rho", group.rho, share);
    checkNumber(this.name, "eps", group.eps, notNegative);
    checkNumber(this.name, "weightDecay", group.weightDecay, notNegative);
  }

  protected override ruleOf = (): RuleName => "adadelta";

  protected override coefficientsOf({ group }: Slot<AdadeltaOptions>): Coefficients {
    const { lr, rho, eps, weightDecay, maximize } = group;
    const sign = maximize ? -1 : 1;
    return { ...noCoefficients, sign, l2: weightDecay, stepSize: lr, oneMinusBeta2: 1 - rho, eps };
  }
}

const share = { holds: (value: number) => value >= 0 && value <= 1, expected: "a number from 0 to 1" };
