import { describeValue } from "../core/describe.ts";
import { ArgumentError, ShapeError } from "../core/errors.ts";
import { belowOne, checkNumber, count, finite, notNegative } from "../core/options.ts";
import type { Given } from "../core/parameters.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { add, mul, sub } from "../ops/elementwise/arithmetic.ts";
import { div } from "../ops/elementwise/division.ts";
import { maximum } from "../ops/elementwise/extrema.ts";
import { addmm } from "../ops/matmul/addmm.ts";
import { mm } from "../ops/matmul/matmul.ts";
import { norm } from "../ops/reduction/norm.ts";
import { transpose } from "../ops/view/permute.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { ComposedOptimizer, type ComposedOptions } from "./composed.ts";
import type { ParameterGroup, Parameters } from "./groups.ts";
import { liveScalar } from "./live_scalar.ts";
import { checkList, optimizerParameters } from "./options.ts";
import type { Slot } from "./slot.ts";

/** Options of {@link Muon}. */
export interface MuonOptions extends Omit<ComposedOptions, "maximize"> {
  /** The decay rate μ of the momentum. Default 0.95. */
  momentum: number;
  /** Nesterov momentum: the gradient is averaged with the momentum once more. Default true. */
  nesterov: boolean;
  /** Decoupled weight decay λ: lr · λ · p is subtracted from each weight p. Default 0. */
  weightDecay: number;
  /** The number of Newton-Schulz iterations. Default 5. */
  newtonSchulzSteps: number;
  /**
   * The coefficients a, b and c of the Newton-Schulz polynomial, which maps singular values to about 1. Its derivative
   * at 0 is as large as possible. Default [3.4445, -4.775, 2.0315].
   *
   * Source: https://kellerjordan.github.io/posts/muon/
   */
  newtonSchulzCoefficients: readonly [a: number, b: number, c: number];
  /** A lower bound of the norm by which the momentum is divided. Default 1e-7. */
  eps: number;
  /**
   * The factor of the learning rate for a matrix. `"original"`, Jordan's: √max(1, rows / columns). `"matchRmsAdamw"`,
   * whose updates are about as large as AdamW's (Liu et al., "Muon is Scalable for LLM Training", 2025):
   * 0.2 √max(rows, columns). `"spectralUnclamped"` (Bernstein, "Deriving Muon", 2025): √(rows / columns). Default
   * "original".
   */
  adjustLearningRate: keyof typeof adjustments;
}

/** Factors of the learning rate. */
const adjustments = {
  original: (rows: number, columns: number) => Math.sqrt(Math.max(1, rows / columns)),
  matchRmsAdamw: (rows: number, columns: number) => 0.2 * Math.sqrt(Math.max(rows, columns)),
  spectralUnclamped: (rows: number, columns: number) => Math.sqrt(rows / columns),
};

const defaults: MuonOptions = {
  lr: 0.02,
  momentum: 0.95,
  nesterov: true,
  weightDecay: 0,
  newtonSchulzSteps: 5,
  newtonSchulzCoefficients: [3.4445, -4.775, 2.0315],
  eps: 1e-7,
  adjustLearningRate: "original",
  masterWeights: false,
};

const muonParameters = optimizerParameters("Muon", defaults);

/**
 * Muon (Keller Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024) updates a matrix by its
 * momentum, approximately orthogonalized.
 *
 *     m ← μ m + (1 - μ) g,   u = μ m + (1 - μ) g, or m without nesterov
 *     p ← p - lr (λ p + adjustment · orthogonalize(u))
 *
 * Use it for the weight matrices of hidden layers. Pass embeddings, biases and norms to another optimizer, such as
 * {@link AdamW}. A step computes several matrix products per parameter, in float32 (float64 for float64 parameters).
 *
 * The formulas are PyTorch's. PyTorch computes the Newton-Schulz iterations in bfloat16, so its steps differ by 1 to
 * 2 %. Its default `lr` is 1e-3 and its default `weightDecay` 0.1; the defaults here are Jordan's.
 *
 * @example
 * const muon = new Muon(matrices, { lr: 0.02 });
 * const adamW = new AdamW(others, { lr: 3e-4 });
 *
 * @throws {ShapeError} `notAMatrix`, naming each parameter that is not a matrix. @throws {ArgumentError} for an invalid
 * option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class Muon extends ComposedOptimizer<MuonOptions> {
  constructor(parameters: Parameters<MuonOptions>, ...options: Given<Partial<MuonOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = muonParameters(values);
    super("Muon", parameters, defaults, options);
    const others = this.slots.filter(({ parameter }) => parameter.rank !== 2);
    if (others.length === 0) return;
    const names = others.map(({ name, parameter }) => `${name} (${parameter.describe()})`).join(", ");
    throw new ShapeError(
      this.name,
      "notAMatrix",
      `expected every parameter to be a matrix, got ${names}; pass these to AdamW`,
    );
  }

  protected override checkOptions(group: ParameterGroup<MuonOptions>): void {
    super.checkOptions(group);
    checkNumber(this.name, "momentum", group.momentum, belowOne);
    checkNumber(this.name, "weightDecay", group.weightDecay, notNegative);
    checkNumber(this.name, "newtonSchulzSteps", group.newtonSchulzSteps, count);
    const example = "[3.4445, -4.775, 2.0315]";
    checkList(this.name, "newtonSchulzCoefficients", group.newtonSchulzCoefficients, example, [finite, finite, finite]);
    checkNumber(this.name, "eps", group.eps, notNegative);
    const choices = Object.keys(adjustments);
    if (choices.includes(group.adjustLearningRate)) return;
    throw new ArgumentError(
      this.name,
      "invalidOption",
      `expected adjustLearningRate to be one of ${choices.join(", ")}, got ${describeValue(group.adjustLearningRate)}`,
    );
  }

  protected override ownState = (): readonly string[] => ["momentum"];

  protected override fixedOptions = (group: ParameterGroup<MuonOptions>): readonly unknown[] => {
    const { momentum, nesterov, newtonSchulzSteps, newtonSchulzCoefficients, eps } = group;
    return [momentum, nesterov, newtonSchulzSteps, ...newtonSchulzCoefficients, eps];
  };

  protected override next({ parameter, state, group }: Slot<MuonOptions>, p: Tensor, g: Tensor): Tensor {
    const { momentum, nesterov } = group;
    const blend = (m: Tensor): Tensor => add(mul(m, momentum), mul(g, 1 - momentum));
    const m = blend(state["momentum"]);
    const direction = orthogonalize(nesterov ? blend(m) : m, group);
    copyInto(state["momentum"], m);
    const [rows, columns] = parameter.sizes(2);
    const scale = liveScalar(() => group.lr * adjustments[group.adjustLearningRate](rows, columns), g.dtype);
    const decay = liveScalar(() => group.lr * group.weightDecay, g.dtype);
    return sub(p, add(mul(p, decay), mul(direction, scale)));
  }
}

/**
 * Returns a matrix with the singular vectors of x and singular values between about 0.7 and 1.2. It runs the
 * Newton-Schulz iteration X ← a X + (b X Xᵀ + c (X Xᵀ)²) X, starting from x / max(‖x‖, eps).
 */
function orthogonalize(x: Tensor, { newtonSchulzSteps, newtonSchulzCoefficients, eps }: MuonOptions): Tensor {
  const [a, b, c] = newtonSchulzCoefficients;
  const isTall = x.shape[0] > x.shape[1]; // X Xᵀ is smaller when X has fewer rows than columns
  const wide = isTall ? transpose(x, 0, 1) : x;
  let next: Tensor = div(wide, maximum(norm(wide), eps));
  for (let step = 0; step < newtonSchulzSteps; step++) {
    const gram = mm(next, transpose(next, 0, 1));
    next = addmm(next, addmm(gram, gram, gram, { beta: b, alpha: c }), next, { beta: a });
  }
  return isTall ? transpose(next, 0, 1) : next;
}
