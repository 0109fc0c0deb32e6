import { type NumberRule, notNegative } from "../core/options.ts";
import type { Given } from "../core/parameters.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { mul, sign, sub } from "../ops/elementwise/arithmetic.ts";
import { clamp } from "../ops/elementwise/clamp.ts";
import { gt, lt } from "../ops/elementwise/comparison.ts";
import { where } from "../ops/elementwise/where.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { ComposedOptimizer, type ComposedOptions } from "./composed.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import { checkList, optimizerParameters } from "./options.ts";
import type { Slot } from "./slot.ts";

/** Options of {@link Rprop}. Its learning rate is the step size of each element in the first step. */
export interface RpropOptions extends ComposedOptions {
  /** The factors η₋ and η₊ by which a step size shrinks and grows. Default [0.5, 1.2]. */
  etas: readonly [shrink: number, grow: number];
  /** The smallest and largest step size. Default [1e-6, 50]. */
  stepSizes: readonly [least: number, most: number];
}

const defaults: RpropOptions = {
  lr: 1e-2,
  etas: [0.5, 1.2],
  stepSizes: [1e-6, 50],
  maximize: false,
  masterWeights: false,
};

const rpropParameters = optimizerParameters("Rprop", defaults);

/**
 * Resilient backpropagation (Riedmiller and Braun, "A Direct Adaptive Method for Faster Backpropagation Learning",
 * 1993), as in PyTorch. Every element has a step size s, which grows while the sign of its gradient stays the same:
 *
 *     g · previous > 0   s ← min(η₊ s, most)
 *     g · previous < 0   s ← max(η₋ s, least),   g ← 0
 *     p ← p - s sign(g),   previous ← g
 *
 * It requires gradients of the whole data set. `lr` has no effect after the first step.
 *
 * @example
 * const optimizer = new Rprop(model.parameters(), { lr: 0.01 });
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class Rprop extends ComposedOptimizer<RpropOptions> {
  constructor(parameters: Parameters<RpropOptions>, ...options: Given<Partial<RpropOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = rpropParameters(values);
    super("Rprop", parameters, defaults, options);
  }

  protected override checkOptions(group: ParameterGroup<RpropOptions>): void {
    super.checkOptions(group);
    checkList(this.name, "etas", group.etas, "[0.5, 1.2]", [shrinks, grows]);
    checkList(this.name, "stepSizes", group.stepSizes, "[1e-6, 50]", [notNegative, notNegative]);
  }

  protected override ownState = (): readonly string[] => ["previousGradient", "stepSize"];

  protected override initialValue(name: string, { lr }: ParameterGroup<RpropOptions>): number {
    return name === "stepSize" ? lr : 0;
  }

  protected override fixedOptions = ({ etas, stepSizes }: ParameterGroup<RpropOptions>): readonly unknown[] => [
    ...etas,
    ...stepSizes,
  ];

  protected override next({ state, group }: Slot<RpropOptions>, p: Tensor, g: Tensor): Tensor {
    const [shrink, grow] = group.etas;
    const [min, max] = group.stepSizes;
    const before = state["stepSize"];
    const agreement: Tensor = mul(g, state["previousGradient"]);
    const isTurn = lt(agreement, 0);
    const grown: Tensor = where(gt(agreement, 0), mul(before, grow), before);
    const stepSize: Tensor = clamp(where(isTurn, mul(before, shrink), grown), { min, max });
    const kept: Tensor = where(isTurn, 0, g);
    copyInto(before, stepSize);
    copyInto(state["previousGradient"], kept);
    return sub(p, mul(sign(kept), stepSize));
  }
}

const shrinks: NumberRule = {
  holds: (value) => value > 0 && value < 1,
  expected: "a number above 0 and below 1",
};
const grows: NumberRule = { holds: (value) => value > 1 && value < Infinity, expected: "a number above 1" };
