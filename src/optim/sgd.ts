import { ArgumentError } from "../core/errors.ts";
import { checkNumber, finite, notNegative } from "../core/options.ts";
import type { Given } from "../core/parameters.ts";
import { FusedOptimizer, type FusedOptions } from "./fused.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import { optimizerParameters } from "./options.ts";
import { type Coefficients, noCoefficients, type RuleName } from "./rules.ts";
import type { Slot } from "./slot.ts";

/** Options of {@link SGD}. */
export interface SGDOptions extends FusedOptions {
  /** The momentum factor μ. Default 0: no momentum. */
  momentum: number;
  /** The fraction of each gradient, except the first, that is left out of the momentum. Default 0. */
  dampening: number;
  /** The weight decay coefficient λ: λ · p is added to the gradient of p (L2 penalty). Default 0. */
  weightDecay: number;
  /** Nesterov momentum: the momentum is added to the gradient once more. Default false. */
  nesterov: boolean;
}

const defaults: SGDOptions = {
  lr: 1e-3,
  momentum: 0,
  dampening: 0,
  weightDecay: 0,
  nesterov: false,
  maximize: false,
  masterWeights: false,
};

const sgdParameters = optimizerParameters("SGD", defaults);

/**
 * Stochastic gradient descent, as in PyTorch. With g ← g + λ p:
 *
 *     m ← μ m + (1 - dampening) g,   p ← p - lr m,   with nesterov p ← p - lr (g + μ m)
 *
 * In the first step m is the gradient.
 *
 * @example
 * const optimizer = new SGD(model.parameters(), { lr: 0.1, momentum: 0.9, nesterov: true });
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class SGD extends FusedOptimizer<SGDOptions> {
  constructor(parameters: Parameters<SGDOptions>, ...options: Given<Partial<SGDOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = sgdParameters(values);
    super("SGD", parameters, defaults, options);
  }

  protected override checkOptions(group: ParameterGroup<SGDOptions>): void {
    super.checkOptions(group);
    checkNumber(this.name, "momentum", group.momentum, notNegative);
    checkNumber(this.name, "dampening", group.dampening, finite);
    checkNumber(this.name, "weightDecay", group.weightDecay, notNegative);
    if (group.nesterov && (group.momentum === 0 || group.dampening !== 0))
      throw new ArgumentError(this.name, "invalidOption", "nesterov requires a momentum above 0 and a dampening of 0");
  }

  protected override ruleOf = ({ momentum, nesterov }: ParameterGroup<SGDOptions>): RuleName =>
    momentum === 0 ? "sgd" : nesterov ? "sgdNesterov" : "sgdMomentum";

  protected override coefficientsOf({ group, steps }: Slot<SGDOptions>): Coefficients {
    const { lr, momentum, dampening, weightDecay, maximize } = group;
    return {
      ...noCoefficients,
      sign: maximize ? -1 : 1,
      l2: weightDecay,
      stepSize: lr,
      momentum,
      oneMinusBeta1: steps === 1 ? 1 : 1 - dampening,
    };
  }
}
