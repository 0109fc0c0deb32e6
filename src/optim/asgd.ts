import { checkNumber, finite, notNegative } from "../core/options.ts";
import type { Given } from "../core/parameters.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { add, mul, sub } from "../ops/elementwise/arithmetic.ts";
import { lerp } from "../ops/elementwise/lerp.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { ComposedOptimizer, type ComposedOptions } from "./composed.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import { liveScalar } from "./live_scalar.ts";
import { optimizerParameters } from "./options.ts";
import type { Slot } from "./slot.ts";

/** Options of {@link ASGD}. */
export interface ASGDOptions extends ComposedOptions {
  /** The decay λ of the parameters, which also makes the step size fall. Default 1e-4. */
  lambd: number;
  /** The power of the step size's decay. Default 0.75. */
  alpha: number;
  /** The number of steps after which averaging starts. Default 1e6. */
  t0: number;
  /** The weight decay coefficient: weightDecay · p is added to the gradient of p (L2 penalty). Default 0. */
  weightDecay: number;
}

const defaults: ASGDOptions = {
  lr: 1e-2,
  lambd: 1e-4,
  alpha: 0.75,
  t0: 1e6,
  weightDecay: 0,
  maximize: false,
  masterWeights: false,
};

const asgdParameters = optimizerParameters("ASGD", defaults);

/**
 * Averaged stochastic gradient descent (Polyak and Juditsky, "Acceleration of Stochastic Approximation by Averaging",
 * 1992), as in PyTorch. In step t, counted from 0, with g ← g + weightDecay p:
 *
 *     η = lr / (1 + λ lr t)^alpha,   p ← (1 - λ η) p - η g,   a ← a + (p - a) / max(1, t - t0)
 *
 * In the first step a ← p.
 * The average a is `average` in the state: `optimizer.stateDict().tensors["0.average"]`. A new learning rate applies to
 * the next step; PyTorch applies it one step later.
 *
 * @example
 * const optimizer = new ASGD(model.parameters(), { lr: 0.1, t0: 1000 });
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class ASGD extends ComposedOptimizer<ASGDOptions> {
  constructor(parameters: Parameters<ASGDOptions>, ...options: Given<Partial<ASGDOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = asgdParameters(values);
    super("ASGD", parameters, defaults, options);
  }

  protected override checkOptions(group: ParameterGroup<ASGDOptions>): void {
    super.checkOptions(group);
    for (const name of ["lambd", "alpha", "weightDecay"] as const)
      checkNumber(this.name, name, group[name], notNegative);
    checkNumber(this.name, "t0", group.t0, finite);
  }

  protected override ownState = (): readonly string[] => ["average"];

  protected override fixedOptions = ({ weightDecay }: ParameterGroup<ASGDOptions>): readonly unknown[] => [weightDecay];

  protected override next(slot: Slot<ASGDOptions>, p: Tensor, g: Tensor): Tensor {
    const { group, state } = slot;
    const stepSize = () => group.lr / (1 + group.lambd * group.lr * (slot.steps - 1)) ** group.alpha;
    const share = () => (slot.steps === 1 ? 1 : 1 / Math.max(1, slot.steps - 1 - group.t0));
    const direction: Tensor = group.weightDecay === 0 ? g : add(g, mul(p, group.weightDecay));
    const decayed: Tensor = mul(
      p,
      liveScalar(() => 1 - group.lambd * stepSize(), p.dtype),
    );
    const next: Tensor = sub(decayed, mul(direction, liveScalar(stepSize, p.dtype)));
    copyInto(state["average"], lerp(state["average"], next, liveScalar(share, p.dtype)));
    return next;
  }
}
