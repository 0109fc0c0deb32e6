import { checkNumber, notNegative } from "../core/options.ts";
import type { Given } from "../core/parameters.ts";
import { FusedOptimizer, type FusedOptions } from "./fused.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import { checkBetas, optimizerParameters } from "./options.ts";
import { type Coefficients, noCoefficients, type RuleName } from "./rules.ts";
import type { Slot } from "./slot.ts";

/** Options of {@link AdamW} and {@link Adam}. */
export interface AdamOptions extends FusedOptions {
  /** Decay rates of the first and second moment (β₁ and β₂). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, the square root of the second moment. Default 1e-8. */
  eps: number;
  /**
   * The weight decay coefficient λ. AdamW subtracts lr · λ · p from each weight p (decoupled, default 0.01). Adam adds
   * λ · p to the gradient (L2 penalty, default 0).
   */
  weightDecay: number;
  /** Uses the maximum of all second moments so far (Reddi et al., 2018). Default false. */
  amsgrad: boolean;
}

const defaults: AdamOptions = {
  lr: 1e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weightDecay: 0,
  amsgrad: false,
  maximize: false,
  masterWeights: false,
};

abstract class AdamBase extends FusedOptimizer<AdamOptions> {
  protected abstract readonly isDecoupled: boolean;

  protected override checkOptions(group: ParameterGroup<AdamOptions>): void {
    super.checkOptions(group);
    checkBetas(this.name, group.betas);
    checkNumber(this.name, "eps", group.eps, notNegative);
    checkNumber(this.name, "weightDecay", group.weightDecay, notNegative);
  }

  protected override ruleOf = ({ amsgrad }: ParameterGroup<AdamOptions>): RuleName =>
    amsgrad ? "adamAmsgrad" : "adam";

  /** The moments start at 0; bias correction, a division by 1 - βᵗ, compensates for it. */
  protected override coefficientsOf({ group, steps }: Slot<AdamOptions>): Coefficients {
    const { lr, eps, weightDecay, maximize } = group;
    const [beta1, beta2] = group.betas;
    return {
      ...noCoefficients,
      sign: maximize ? -1 : 1,
      l2: this.isDecoupled ? 0 : weightDecay,
      decoupledDecay: this.isDecoupled ? lr * weightDecay : 0,
      stepSize: lr / (1 - beta1 ** steps),
      oneMinusBeta1: 1 - beta1,
      oneMinusBeta2: 1 - beta2,
      biasCorrection: 1 / Math.sqrt(1 - beta2 ** steps),
      eps,
    };
  }
}

const adamWDefaults: AdamOptions = { ...defaults, weightDecay: 0.01 };
const adamWParameters = optimizerParameters("AdamW", adamWDefaults);

/**
 * AdamW, Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019), as in
 * PyTorch. For a parameter p with gradient g in step t:
 *
 *     m ← β₁ m + (1 - β₁) g,   v ← β₂ v + (1 - β₂) g²
 *     m̂ = m / (1 - β₁ᵗ),   v̂ = v / (1 - β₂ᵗ)
 *     p ← p - lr (λ p + m̂ / (√v̂ + eps))
 *
 * The moments are float32 (float64 for float64 parameters). A step updates all parameters in a few calls; each byte
 * is read once and written once.
 *
 * @example
 * const optimizer = new AdamW(model.parameters(), { lr: 3e-4, weightDecay: 0.1 });
 * loss.backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class AdamW extends AdamBase {
  protected override readonly isDecoupled = true;

  constructor(parameters: Parameters<AdamOptions>, ...options: Given<Partial<AdamOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = adamWParameters(values);
    super("AdamW", parameters, adamWDefaults, options);
  }
}

const adamParameters = optimizerParameters("Adam", defaults);

/**
 * Adam (Kingma and Ba, 2015), as in PyTorch: {@link AdamW} with the weight decay added to the gradient.
 *
 * @example
 * const optimizer = new optim.Adam(model.parameters(), { lr: 1e-3 });
 *
 * @throws as {@link AdamW}
 */
export class Adam extends AdamBase {
  protected override readonly isDecoupled = false;

  constructor(parameters: Parameters<AdamOptions>, ...options: Given<Partial<AdamOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = adamParameters(values);
    super("Adam", parameters, defaults, options);
  }
}
