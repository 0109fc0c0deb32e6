import { ArgumentError } from "../core/errors.ts";
import { checkNumber, finite, notNegative } from "../core/options.ts";
import { FusedOptimizer, type FusedOptions } from "./fused.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import type { Slot } from "./optimizer.ts";
import { type Coefficients, noCoefficients, type RuleName } from "./rules.ts";

/** Options of {@link SGD}. */
export interface SGDOptions extends FusedOptions {
  /** How much of the sum of gradients stays in a step. Default 0: there is none. */
  momentum: number;
  /** How much of a gradient does not enter that sum, but for the first. Default 0. */
  dampening: number;
  /** Of the weight, added to its gradient. Default 0. */
  weightDecay: number;
  /** Looks ahead (Nesterov): the momentum is added to the gradient again. Default false. */
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

/**
 * Stochastic gradient descent, PyTorch's: of gradients g + λ p
 *
 *     m ← μ m + (1 - dampening) g,   p ← p - lr m,   with nesterov p ← p - lr (g + μ m)
 *
 * The first gradient is m.
 *
 * @example
 * const optimizer = new SGD(model.parameters(), { lr: 0.1, momentum: 0.9, nesterov: true });
 *
 * @throws {ArgumentError} for an option or a list of parameters that is none. @throws {DTypeError} for integer parameters.
 */
export class SGD extends FusedOptimizer<SGDOptions> {
  constructor(parameters: Parameters<SGDOptions>, options: Partial<SGDOptions> = {}) {
    super("SGD", parameters, defaults, options);
  }

  protected override checkOptions(group: ParameterGroup<SGDOptions>): void {
    super.checkOptions(group);
    checkNumber(this.name, "momentum", group.momentum, notNegative);
    checkNumber(this.name, "dampening", group.dampening, finite);
    checkNumber(this.name, "weightDecay", group.weightDecay, notNegative);
    if (group.nesterov && (group.momentum === 0 || group.dampening !== 0))
      throw new ArgumentError(this.name, "invalidOption", "nesterov wants a momentum above 0 and no dampening");
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
      keep: momentum,
      take1: steps === 1 ? 1 : 1 - dampening,
    };
  }
}
