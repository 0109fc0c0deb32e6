import { checkNumber, notNegative } from "../core/options.ts";
import type { Given } from "../core/parameters.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { mul, square, sub } from "../ops/elementwise/arithmetic.ts";
import { clamp } from "../ops/elementwise/clamp.ts";
import { div } from "../ops/elementwise/division.ts";
import { lerp } from "../ops/elementwise/lerp.ts";
import { rsqrt } from "../ops/elementwise/power.ts";
import { plainMatmul as matmul } from "../ops/matmul/plain_matmul.ts";
import { mean } from "../ops/reduction/mean.ts";
import { norm } from "../ops/reduction/norm.ts";
import type { FloatDType } from "../tensor/dtype.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { ComposedOptimizer, type ComposedOptions } from "./composed.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import { liveScalar } from "./live_scalar.ts";
import { listOf, optimizerParameters } from "./options.ts";
import type { Slot } from "./slot.ts";

/** Options of {@link Adafactor}, as in PyTorch. */
export interface AdafactorOptions extends ComposedOptions {
  /** The exponent of the decay rate: 1 − β₂ in step t is t^beta2Decay. Default −0.8. */
  beta2Decay: number;
  /**
   * Lower bounds: ε₁ of the variance estimates, null for the dtype's machine epsilon, and ε₂ of the root mean square of
   * a parameter. Default [null, 1e-3].
   */
  eps: readonly [first: number | null, second: number];
  /** The root mean square to which an update is clipped. Default 1. */
  d: number;
  /** Decoupled weight decay λ: lr · λ · p is subtracted from each weight p. Default 0. */
  weightDecay: number;
  /** Maximizes the objective instead of minimizing it. Default false. */
  maximize: boolean;
}

const defaults: AdafactorOptions = {
  lr: 1e-2,
  beta2Decay: -0.8,
  eps: [null, 1e-3],
  d: 1,
  weightDecay: 0,
  maximize: false,
  masterWeights: false,
};

const adafactorParameters = optimizerParameters("Adafactor", defaults);

/** Machine epsilon: the difference between 1 and the next number. */
const precision: Readonly<Record<FloatDType, number>> = {
  float64: 2 ** -52,
  float32: 2 ** -23,
  bfloat16: 2 ** -7,
  float16: 2 ** -10,
};

/**
 * Adafactor (Shazeer and Stern, "Adaptive Learning Rates with Sublinear Memory Cost", 2018), as in PyTorch. For a
 * matrix it keeps the mean squared gradients of rows (r) and columns (c) instead of one for each element. With b =
 * t^`beta2Decay` and ρ = min(lr, 1 / √t):
 *
 *     r ← r + b (mean(g²) of rows - r),  c ← c + b (mean(g²) of columns - c),  v = r c / max(mean(r), ε₁)
 *     v ← v + b (g² - v)                                                       for a parameter with fewer than two axes
 *     u = g / √max(v, ε₁²),   p ← p - lr λ p - ρ max(ε₂, rms(p)) u / max(1, rms(u) / d)
 *
 * @example
 * const optimizer = new Adafactor(model.parameters(), { lr: 1e-2 });
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class Adafactor extends ComposedOptimizer<AdafactorOptions> {
  constructor(parameters: Parameters<AdafactorOptions>, ...options: Given<Partial<AdafactorOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = adafactorParameters(values);
    super("Adafactor", parameters, defaults, options);
  }

  protected override checkOptions(group: ParameterGroup<AdafactorOptions>): void {
    super.checkOptions(group);
    const [first, second] = listOf(this.name, "eps", group.eps, "[null, 1e-3]");
    if (first !== null) checkNumber(this.name, "eps[0]", first, notNegative);
    checkNumber(this.name, "eps[1]", second, notNegative);
    checkNumber(this.name, "beta2Decay", group.beta2Decay, {
      holds: (value) => value <= 0,
      expected: "a number of at most 0",
    });
    checkNumber(this.name, "d", group.d, { holds: (value) => value >= 1, expected: "a number of at least 1" });
    checkNumber(this.name, "weightDecay", group.weightDecay, notNegative);
  }

  protected override ownState = ({ rank }: Tensor): readonly string[] =>
    rank > 1 ? ["rowVariance", "columnVariance"] : ["variance"];

  /** One element per row in `rowVariance`, and per column in `columnVariance`. */
  override stateShape(name: string, { shape, rank }: Tensor): Shape {
    if (name === "rowVariance") return shape.with(rank - 1, 1);
    return name === "columnVariance" ? shape.with(rank - 2, 1) : shape;
  }

  protected override fixedOptions = ({ eps, d, weightDecay }: ParameterGroup<AdafactorOptions>): readonly unknown[] => [
    ...eps,
    d,
    weightDecay === 0,
  ];

  protected override next(slot: Slot<AdafactorOptions>, p: Tensor, g: Tensor): Tensor {
    const { parameter, group } = slot;
    const { eps, d, weightDecay } = group;
    const [first, second] = [eps[0] ?? precision[parameter.dtype as FloatDType], eps[1]];
    const size: Tensor = clamp(mul(norm(p), 1 / Math.sqrt(p.size)), { min: second });
    const newest = liveScalar(() => slot.steps ** group.beta2Decay, g.dtype);
    const estimate = varianceOf(slot, g, newest, first);
    const direction: Tensor = mul(rsqrt(clamp(estimate, { min: first * first })), g);
    const clipping: Tensor = clamp(mul(norm(direction), 1 / (Math.sqrt(p.size) * d)), { min: 1 });
    const rate = liveScalar(() => Math.min(group.lr, 1 / Math.sqrt(slot.steps)), g.dtype);
    const stepSize: Tensor = mul(div(size, clipping), rate);
    const kept = () => 1 - group.lr * group.weightDecay;
    const decayed: Tensor = weightDecay === 0 ? p : mul(p, liveScalar(kept, g.dtype));
    return sub(decayed, mul(direction, stepSize));
  }
}

/** Updates the averages, and returns the estimated variance of each element. */
function varianceOf({ state }: Slot<AdafactorOptions>, g: Tensor, weight: Tensor | number, eps: number): Tensor {
  const blend = (name: string, value: Tensor): Tensor => {
    const next: Tensor = lerp(state[name], value, weight);
    copyInto(state[name], next);
    return next;
  };
  if (g.rank < 2) return blend("variance", square(g));
  const squares: Tensor = square(g);
  const rows = blend("rowVariance", mean(squares, { dim: -1, keepdim: true }));
  const columns = blend("columnVariance", mean(squares, { dim: -2, keepdim: true }));
  return div(matmul(rows, columns), clamp(mean(rows, { dim: -2, keepdim: true }), { min: eps }));
}
