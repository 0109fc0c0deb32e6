import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { listed } from "../core/kinds.ts";
import { checkNumber, notNegative } from "../core/options.ts";
import { type Given, reading } from "../core/parameters.ts";
import { toDType } from "../ops/copy/cast.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { mul, neg, square, sub } from "../ops/elementwise/arithmetic.ts";
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
import type { LearningRate, ParameterGroup, Parameters } from "./groups.ts";
import { liveScalar } from "./live_scalar.ts";
import { Optimizer } from "./optimizer.ts";
import { optimizerParameters } from "./options.ts";
import { type Slot, stateDType, type Update } from "./slot.ts";

/** Options of {@link Adafactor}, as in PyTorch. */
export interface AdafactorOptions extends LearningRate {
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
  /** Keeps a float32 copy of float16 and bfloat16 parameters. Default false. */
  masterWeights: boolean;
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
export class Adafactor extends Optimizer<AdafactorOptions> {
  constructor(parameters: Parameters<AdafactorOptions>, ...options: Given<Partial<AdafactorOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = adafactorParameters(values);
    super("Adafactor", parameters, defaults, options);
  }

  protected override checkOptions(group: ParameterGroup<AdafactorOptions>): void {
    super.checkOptions(group);
    const { eps } = group;
    if (!reading(this.name, () => Array.isArray(eps) && eps.length === 2))
      throw new ArgumentError(
        this.name,
        "invalidOption",
        `expected eps to be two numbers, such as [null, 1e-3], got ${describeValue(eps)}`,
      );
    const [first, second] = reading(this.name, () => listed(eps) ?? []);
    if (first !== null) checkNumber(this.name, "eps[0]", first, notNegative);
    checkNumber(this.name, "eps[1]", second, notNegative);
    checkNumber(this.name, "beta2Decay", group.beta2Decay, {
      holds: (value) => value <= 0,
      expected: "a number of at most 0",
    });
    checkNumber(this.name, "d", group.d, { holds: (value) => value >= 1, expected: "a number of at least 1" });
    checkNumber(this.name, "weightDecay", group.weightDecay, notNegative);
  }

  override stateNames({ masterWeights }: ParameterGroup<AdafactorOptions>, { dtype, rank }: Tensor): readonly string[] {
    const moments = rank > 1 ? ["rowVariance", "columnVariance"] : ["variance"];
    return masterWeights && (dtype === "float16" || dtype === "bfloat16") ? [...moments, "master"] : moments;
  }

  /** One element per row in `rowVariance`, and per column in `columnVariance`. */
  override stateShape(name: string, { shape, rank }: Tensor): Shape {
    if (name === "rowVariance") return shape.with(rank - 1, 1);
    return name === "columnVariance" ? shape.with(rank - 2, 1) : shape;
  }

  /** @internal */
  override stepKey(): string {
    const fixed = this.groups.map(({ eps, d, weightDecay, maximize, masterWeights }) =>
      [...eps, d, weightDecay === 0, maximize, masterWeights].join(" "),
    );
    return fixed.join();
  }

  protected override update(updates: readonly Update<AdafactorOptions>[]): void {
    for (const { slot, gradient } of updates) updateOne(slot, gradient);
  }
}

function updateOne(slot: Slot<AdafactorOptions>, gradient: Tensor): void {
  const { parameter, state, group } = slot;
  const { eps, d, weightDecay, maximize } = group;
  const [first, second] = [eps[0] ?? precision[parameter.dtype as FloatDType], eps[1]];
  const given: Tensor = toDType(gradient, stateDType(parameter));
  const g: Tensor = maximize ? neg(given) : given;
  const p: Tensor = state["master"] ?? toDType(parameter, g.dtype);
  const size: Tensor = clamp(mul(norm(p), 1 / Math.sqrt(p.size)), { min: second });
  const estimate = varianceOf(
    slot,
    g,
    liveScalar(() => slot.steps ** group.beta2Decay, g.dtype),
    first,
  );
  const direction: Tensor = mul(rsqrt(clamp(estimate, { min: first * first })), g);
  const clipping: Tensor = clamp(mul(norm(direction), 1 / (Math.sqrt(p.size) * d)), { min: 1 });
  const rate = liveScalar(() => Math.min(group.lr, 1 / Math.sqrt(slot.steps)), g.dtype);
  const stepSize: Tensor = mul(div(size, clipping), rate);
  const kept = () => 1 - group.lr * group.weightDecay;
  const decayed: Tensor = weightDecay === 0 ? p : mul(p, liveScalar(kept, g.dtype));
  const next = sub(decayed, mul(direction, stepSize));
  if (state["master"]) copyInto(state["master"], next);
  copyInto(parameter, next);
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
