/** Variants of Adam: Adamax (infinity norm), NAdam (Nesterov momentum) and RAdam (rectified variance). */
import { getOrMake, lastElement } from "../core/collections.ts";
import { checkNumber, notNegative } from "../core/options.ts";
import type { Given } from "../core/parameters.ts";
import { FusedOptimizer, type FusedOptions } from "./fused.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import { checkBetas, optimizerParameters } from "./options.ts";
import { type Coefficients, noCoefficients, type RuleName } from "./rules.ts";
import type { Slot } from "./slot.ts";

/** Options of {@link Adamax}, which {@link RAdam} and {@link NAdam} extend. */
export interface AdamaxOptions extends FusedOptions {
  /** Decay rates of the first and second moment (β₁ and β₂). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, or in Adamax to |g|. Default 1e-8. */
  eps: number;
  /** The weight decay coefficient λ: λ · p is added to the gradient of p (L2 penalty). Default 0. */
  weightDecay: number;
}

/** Options of {@link RAdam}. */
export interface RAdamOptions extends AdamaxOptions {
  /** Subtracts lr · λ · p from each weight p instead, as AdamW does. Default false. */
  decoupledWeightDecay: boolean;
}

/** Options of {@link NAdam}. */
export interface NAdamOptions extends RAdamOptions {
  /** How fast the momentum rises to β₁: μ of step t is β₁ (1 - 0.96^(t momentumDecay) / 2). Default 4e-3. */
  momentumDecay: number;
}

const adamaxDefaults: AdamaxOptions = {
  lr: 2e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weightDecay: 0,
  maximize: false,
  masterWeights: false,
};
const radamDefaults: RAdamOptions = { ...adamaxDefaults, lr: 1e-3, decoupledWeightDecay: false };
const nadamDefaults: NAdamOptions = { ...adamaxDefaults, momentumDecay: 4e-3, decoupledWeightDecay: false };

abstract class AdamVariant<Options extends AdamaxOptions> extends FusedOptimizer<Options> {
  protected override checkOptions(group: ParameterGroup<Options>): void {
    super.checkOptions(group);
    checkBetas(this.name, group.betas);
    checkNumber(this.name, "eps", group.eps, notNegative);
    checkNumber(this.name, "weightDecay", group.weightDecay, notNegative);
  }

  /** The coefficients that all variants share; each adds its step size. */
  protected common({ group, steps }: Slot<Options>, isDecoupled: boolean): Coefficients {
    const { lr, betas, eps, weightDecay, maximize } = group;
    return {
      ...noCoefficients,
      sign: maximize ? -1 : 1,
      l2: isDecoupled ? 0 : weightDecay,
      decoupledDecay: isDecoupled ? lr * weightDecay : 0,
      oneMinusBeta1: 1 - betas[0],
      oneMinusBeta2: 1 - betas[1],
      biasCorrection: 1 / Math.sqrt(1 - betas[1] ** steps),
      eps,
    };
  }
}

const adamaxParameters = optimizerParameters("Adamax", adamaxDefaults);

/**
 * Adamax (Kingma and Ba, "Adam", 2015, section 7.1), as in PyTorch: Adam with a decayed maximum of |g| instead of the
 * second moment. For a parameter p with gradient g ← g + λ p in step t:
 *
 *     m ← β₁ m + (1 - β₁) g,   u ← max(β₂ u, |g| + eps),   p ← p - lr / (1 - β₁ᵗ) m / u
 *
 * @example
 * const optimizer = new Adamax(model.parameters());
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class Adamax extends AdamVariant<AdamaxOptions> {
  constructor(parameters: Parameters<AdamaxOptions>, ...options: Given<Partial<AdamaxOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = adamaxParameters(values);
    super("Adamax", parameters, adamaxDefaults, options);
  }

  protected override ruleOf = (): RuleName => "adamax";

  protected override coefficientsOf(slot: Slot<AdamaxOptions>): Coefficients {
    const [beta1, beta2] = slot.group.betas;
    const stepSize = slot.group.lr / (1 - beta1 ** slot.steps);
    return { ...this.common(slot, false), stepSize, momentum: beta2 };
  }
}

const radamParameters = optimizerParameters("RAdam", radamDefaults);

/**
 * RAdam (Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020), as in PyTorch. In the first
 * steps, it is Adam without the second moment, whose estimate is unreliable. Afterwards, the second moment is
 * rectified. In step t:
 *
 *     ρ∞ = 2 / (1 - β₂) - 1,   ρ = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ),   m and v as in Adam, m̂ = m / (1 - β₁ᵗ)
 *     p ← p - lr m̂ √((ρ - 4)(ρ - 2) ρ∞ / ((ρ∞ - 4)(ρ∞ - 2) ρ)) √(1 - β₂ᵗ) / (√v + eps)    if ρ > 5
 *     p ← p - lr m̂                                                                       otherwise
 *
 * @example
 * const optimizer = new RAdam(model.parameters(), { lr: 1e-3 });
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class RAdam extends AdamVariant<RAdamOptions> {
  constructor(parameters: Parameters<RAdamOptions>, ...options: Given<Partial<RAdamOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = radamParameters(values);
    super("RAdam", parameters, radamDefaults, options);
  }

  protected override ruleOf = (): RuleName => "radam";

  protected override coefficientsOf(slot: Slot<RAdamOptions>): Coefficients {
    const { lr, betas, decoupledWeightDecay } = slot.group;
    const common = this.common(slot, decoupledWeightDecay);
    const stepSize = lr / (1 - betas[0] ** slot.steps);
    const rectification = rectificationOf(betas[1], slot.steps);
    if (rectification === undefined) return { ...common, stepSize, biasCorrection: 0 };
    const correction = Math.sqrt(1 - betas[1] ** slot.steps);
    return { ...common, stepSize: stepSize * rectification * correction, biasCorrection: 1 };
  }
}

/** The variance rectification term; undefined in the first steps, if ρ ≤ 5. */
function rectificationOf(beta2: number, step: number): number | undefined {
  const most = 2 / (1 - beta2) - 1;
  const now = most - (2 * step * beta2 ** step) / (1 - beta2 ** step);
  if (now <= 5) return undefined;
  return Math.sqrt(((now - 4) * (now - 2) * most) / ((most - 4) * (most - 2) * now));
}

const nadamParameters = optimizerParameters("NAdam", nadamDefaults);

/**
 * NAdam (Dozat, "Incorporating Nesterov Momentum into Adam", 2016), as in PyTorch. With Adam's m, v and v̂ in step t:
 *
 *     μₜ = β₁ (1 - 0.96^(t momentumDecay) / 2),   Πₜ = μ₁ … μₜ
 *     p ← p - lr (μₜ₊₁ m / (1 - Πₜ₊₁) + (1 - μₜ) g / (1 - Πₜ)) / (√v̂ + eps)
 *
 * The product Π is computed from the current options: change β₁ and `momentumDecay` only before the first step.
 *
 * @example
 * const optimizer = new NAdam(model.parameters(), { lr: 2e-3 });
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class NAdam extends AdamVariant<NAdamOptions> {
  constructor(parameters: Parameters<NAdamOptions>, ...options: Given<Partial<NAdamOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = nadamParameters(values);
    super("NAdam", parameters, nadamDefaults, options);
  }

  protected override checkOptions(group: ParameterGroup<NAdamOptions>): void {
    super.checkOptions(group);
    checkNumber(this.name, "momentumDecay", group.momentumDecay, notNegative);
  }

  protected override ruleOf = (): RuleName => "nadam";

  /** The product of momentum factors up to each step, keyed by the options that determine the factors. */
  readonly #products = new Map<string, number[]>();

  /** `stepSize` is the factor of m; g has `momentum` times that factor. */
  protected override coefficientsOf(slot: Slot<NAdamOptions>): Coefficients {
    const { lr, betas, momentumDecay, decoupledWeightDecay } = slot.group;
    const momentumOf = (step: number) => betas[0] * (1 - 0.5 * 0.96 ** (step * momentumDecay));
    const products = getOrMake(this.#products, `${betas[0]} ${momentumDecay}`, () => [1]);
    const product = productOf(products, momentumOf, slot.steps);
    const [now, next] = [momentumOf(slot.steps), momentumOf(slot.steps + 1)];
    const ofGradient = (1 - now) / (1 - product);
    const common = this.common(slot, decoupledWeightDecay);
    // Without momentum, m is g, so the factor of m determines the whole step.
    if (next === 0) return { ...common, stepSize: lr * ofGradient, momentum: 0 };
    const ofMomentum = next / (1 - product * next);
    return { ...common, stepSize: lr * ofMomentum, momentum: ofGradient / ofMomentum };
  }
}

/** The product of the first `steps` factors, cached in `known`. It underflows to 0 after some thousands of them. */
function productOf(known: number[], factor: (step: number) => number, steps: number): number {
  while (known.length <= steps && lastElement(known) > 0) known.push(lastElement(known) * factor(known.length));
  return known[Math.min(steps, known.length - 1)];
}
