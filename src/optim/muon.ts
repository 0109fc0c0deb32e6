import { ShapeError } from "../core/errors.ts";
import { belowOne, checkNumber, count, notNegative } from "../core/options.ts";
import type { Given } from "../core/parameters.ts";
import { toDType } from "../ops/copy/cast.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { add, mul, sub } from "../ops/elementwise/arithmetic.ts";
import { div } from "../ops/elementwise/division.ts";
import { maximum } from "../ops/elementwise/extrema.ts";
import { addmm } from "../ops/matmul/addmm.ts";
import { mm } from "../ops/matmul/matmul.ts";
import { norm } from "../ops/reduction/norm.ts";
import { transpose } from "../ops/view/permute.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { LearningRate, ParameterGroup, Parameters } from "./groups.ts";
import { liveScalar } from "./live_scalar.ts";
import { Optimizer } from "./optimizer.ts";
import { optimizerParameters } from "./options.ts";
import { stateDType, type Update } from "./slot.ts";

/** Options of {@link Muon}. */
export interface MuonOptions extends LearningRate {
  /** The decay rate μ of the momentum. Default 0.95. */
  momentum: number;
  /** Nesterov momentum: the gradient is averaged with the momentum once more. Default true. */
  nesterov: boolean;
  /** Decoupled weight decay λ: lr · λ · p is subtracted from each weight p. Default 0. */
  weightDecay: number;
  /** The number of Newton-Schulz iterations. Default 5. */
  newtonSchulzSteps: number;
  /** Keeps a float32 copy of float16 and bfloat16 parameters. Default false. */
  masterWeights: boolean;
}

const defaults: MuonOptions = {
  lr: 0.02,
  momentum: 0.95,
  nesterov: true,
  weightDecay: 0,
  newtonSchulzSteps: 5,
  masterWeights: false,
};

const muonParameters = optimizerParameters("Muon", defaults);

/**
 * Muon (Keller Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024) updates a matrix by its
 * momentum, approximately orthogonalized.
 *
 *     m ← μ m + (1 - μ) g,   u = μ m + (1 - μ) g, or m without nesterov
 *     p ← p - lr (λ p + √max(1, rows / columns) · orthogonalize(u))
 *
 * Use it for the weight matrices of hidden layers. Pass embeddings, biases and norms to another optimizer, such as
 * {@link AdamW}. A step computes several matrix products per parameter, in float32 (float64 for float64 parameters).
 *
 * @example
 * const muon = new Muon(matrices, { lr: 0.02 });
 * const adamW = new AdamW(others, { lr: 3e-4 });
 *
 * @throws {ShapeError} `notAMatrix`, naming each parameter that is not a matrix. @throws {ArgumentError} for an invalid
 * option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class Muon extends Optimizer<MuonOptions> {
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
  }

  override stateNames({ masterWeights }: ParameterGroup<MuonOptions>, { dtype }: Tensor): readonly string[] {
    return masterWeights && (dtype === "float16" || dtype === "bfloat16") ? ["momentum", "master"] : ["momentum"];
  }

  /** @internal */
  override stepKey(): string {
    const fixed = this.groups.map(({ momentum, nesterov, newtonSchulzSteps, masterWeights }) =>
      [momentum, nesterov, newtonSchulzSteps, masterWeights].join(" "),
    );
    return fixed.join();
  }

  protected override update(updates: readonly Update<MuonOptions>[]): void {
    for (const each of updates) updateMatrix(each);
  }
}

function updateMatrix({ slot, gradient }: Update<MuonOptions>): void {
  const { parameter, state, group } = slot;
  const { momentum, nesterov, newtonSchulzSteps } = group;
  const g: Tensor = toDType(gradient, stateDType(parameter));
  const p: Tensor = state["master"] ?? toDType(parameter, g.dtype);
  const blend = (m: Tensor): Tensor => add(mul(m, momentum), mul(g, 1 - momentum));
  const m = blend(state["momentum"]);
  const [rows, columns] = parameter.sizes(2);
  const direction = orthogonalize(nesterov ? blend(m) : m, newtonSchulzSteps);
  const scale = liveScalar(() => group.lr * Math.sqrt(Math.max(1, rows / columns)), g.dtype);
  const decay = liveScalar(() => group.lr * group.weightDecay, g.dtype);
  const next = sub(p, add(mul(p, decay), mul(direction, scale)));
  copyInto(state["momentum"], m);
  if (state["master"]) copyInto(state["master"], next);
  copyInto(parameter, next);
}

/**
 * Coefficients of the Newton-Schulz polynomial, which maps singular values to about 1. Its derivative at 0 is as large
 * as possible.
 *
 * Source: https://kellerjordan.github.io/posts/muon/
 */
const [A, B, C] = [3.4445, -4.775, 2.0315];
/** A lower bound of the norm, to avoid a division by 0. */
const EPSILON = 1e-7;

/**
 * Returns a matrix with the singular vectors of x and singular values between about 0.7 and 1.2. It runs the
 * Newton-Schulz iteration X ← A X + (B X Xᵀ + C (X Xᵀ)²) X, starting from x / ‖x‖.
 */
export function orthogonalize(x: Tensor, steps: number): Tensor {
  const isTall = x.shape[0] > x.shape[1]; // X Xᵀ is smaller when X has fewer rows than columns
  const wide = isTall ? transpose(x, 0, 1) : x;
  let next: Tensor = div(wide, maximum(norm(wide), EPSILON));
  for (let step = 0; step < steps; step++) {
    const gram = mm(next, transpose(next, 0, 1));
    next = addmm(next, addmm(gram, gram, gram, { beta: B, alpha: C }), next, { beta: A });
  }
  return isTall ? transpose(next, 0, 1) : next;
}
