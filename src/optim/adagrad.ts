import { checkNumber, notNegative } from "../core/options.ts";
import type { Given } from "../core/parameters.ts";
import { FusedOptimizer, type FusedOptions } from "./fused.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import { optimizerParameters } from "./options.ts";
import { type Coefficients, noCoefficients, type RuleName } from "./rules.ts";
import type { Slot } from "./slot.ts";

/** Options of {@link Adagrad}. */
export interface AdagradOptions extends FusedOptions {
  /** The learning rate of step t, counted from 0, is lr / (1 + t · lrDecay). Default 0. */
  lrDecay: number;
  /** The weight decay coefficient λ: λ · p is added to the gradient of p (L2 penalty). Default 0. */
  weightDecay: number;
  /** The initial value of the sum of squared gradients. Default 0. */
  initialAccumulatorValue: number;
  /** Added to the denominator. Default 1e-10. */
  eps: number;
}

const defaults: AdagradOptions = {
  lr: 1e-2,
  lrDecay: 0,
  weightDecay: 0,
  initialAccumulatorValue: 0,
  eps: 1e-10,
  maximize: false,
  masterWeights: false,
};

const adagradParameters = optimizerParameters("Adagrad", defaults);

/**
 * Adagrad (Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011), as in PyTorch. With g ← g + λ p:
 *
 *     s ← s + g²,   p ← p - lr / (1 + t lrDecay) g / (√s + eps)
 *
 * @example
 * const optimizer = new Adagrad(model.parameters(), { lr: 0.1 });
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class Adagrad extends FusedOptimizer<AdagradOptions> {
  constructor(parameters: Parameters<AdagradOptions>, ...options: Given<Partial<AdagradOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = adagradParameters(values);
    super("Adagrad", parameters, defaults, options);
  }

  protected override checkOptions(group: ParameterGroup<AdagradOptions>): void {
    super.checkOptions(group);
    checkNumber(this.name, "lrDecay", group.lrDecay, notNegative);
    checkNumber(this.name, "weightDecay", group.weightDecay, notNegative);
    checkNumber(this.name, "initialAccumulatorValue", group.initialAccumulatorValue, notNegative);
    checkNumber(this.name, "eps", group.eps, notNegative);
  }

  protected override ruleOf = (): RuleName => "adagrad";

  protected override initialValue(name: string, group: ParameterGroup<AdagradOptions>): number {
    return name === "squareSum" ? group.initialAccumulatorValue : 0;
  }

  protected override coefficientsOf({ group, steps }: Slot<AdagradOptions>): Coefficients {
    const { lr, lrDecay, weightDecay, eps, maximize } = group;
    const stepSize = lr / (1 + (steps - 1) * lrDecay);
    return { ...noCoefficients, sign: maximize ? -1 : 1, l2: weightDecay, stepSize, eps };
  }
}
