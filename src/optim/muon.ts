import { ShapeError } from "../core/errors.ts";
import { belowOne, checkNumber, count, notNegative } from "../core/options.ts";
import { toDType } from "../ops/copy/cast.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { add, div, maximum, mul, sub } from "../ops/elementwise/binary.ts";
import { addmm } from "../ops/matmul/addmm.ts";
import { mm } from "../ops/matmul/matmul.ts";
import { norm } from "../ops/reduction/norm.ts";
import { transpose } from "../ops/view/permute.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { LearningRate, ParameterGroup, Parameters } from "./groups.ts";
import { Optimizer, stateDType, type Update } from "./optimizer.ts";

/** Options of {@link Muon}. */
export interface MuonOptions extends LearningRate {
  /** How much of the momentum stays in a step. Default 0.95. */
  momentum: number;
  /** Looks ahead (Nesterov): the gradient is averaged with the momentum once more. Default true. */
  nesterov: boolean;
  /** The share of the learning rate by which a weight shrinks. Default 0. */
  weightDecay: number;
  /** Steps of the Newton-Schulz iteration. Default 5. */
  newtonSchulzSteps: number;
  /** Keeps float32 values of float16 and bfloat16 parameters. Default false. */
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

/**
 * Muon (Keller Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024): the momentum of a matrix, made nearly orthogonal.
 *
 *     m ← μ m + (1 - μ) g,   u = μ m + (1 - μ) g, or m without nesterov
 *     p ← p - lr (λ p + √max(1, rows / columns) · orthogonalize(u))
 *
 * For the weights of hidden layers, which are matrices: embeddings, biases and norms belong to another optimizer, {@link AdamW} say. A step has some matrix
 * products a parameter, in float32 (float64 of float64).
 *
 * @example
 * const muon = new Muon(matrices, { lr: 0.02 });
 * const adamW = new AdamW(others, { lr: 3e-4 });
 *
 * @throws {ShapeError} `notAMatrix`, naming each parameter that is none. @throws {ArgumentError} @throws {DTypeError} as others.
 */
export class Muon extends Optimizer<MuonOptions> {
  constructor(parameters: Parameters<MuonOptions>, options: Partial<MuonOptions> = {}) {
    super("Muon", parameters, defaults, options);
    const others = this.slots.filter(({ parameter }) => parameter.rank !== 2);
    if (others.length === 0) return;
    const names = others.map(({ name, parameter }) => `${name} (${parameter.describe()})`).join(", ");
    throw new ShapeError(
      this.name,
      "notAMatrix",
      `only matrices can be made orthogonal, and these are none: ${names}; give them to AdamW`,
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

  protected override update(updates: readonly Update<MuonOptions>[]): void {
    for (const each of updates) updateMatrix(each);
  }
}

function updateMatrix({ slot, gradient }: Update<MuonOptions>): void {
  const { parameter, state, group } = slot;
  const { lr, momentum, nesterov, weightDecay, newtonSchulzSteps } = group;
  const g: Tensor = toDType(gradient, stateDType(parameter));
  const p: Tensor = state["master"] ?? toDType(parameter, g.dtype);
  const blend = (m: Tensor): Tensor => add(mul(m, momentum), mul(g, 1 - momentum));
  const m = blend(state["momentum"]!);
  const [rows, columns] = parameter.shape as [number, number];
  const direction = orthogonalize(nesterov ? blend(m) : m, newtonSchulzSteps);
  const scale = lr * Math.sqrt(Math.max(1, rows / columns));
  const next = sub(p, add(mul(p, lr * weightDecay), mul(direction, scale)));
  copyInto(state["momentum"]!, m);
  if (state["master"]) copyInto(state["master"], next);
  copyInto(parameter, next);
}

/** Of a polynomial that brings singular values to about 1, with the largest slope at 0 (Keller Jordan's, https://kellerjordan.github.io/posts/muon/). */
const [A, B, C] = [3.4445, -4.775, 2.0315];
const LEAST_NORM = 1e-7;

/**
 * A matrix with the singular vectors of x and singular values between about 0.7 and 1.2: steps of Newton and Schulz, X ← A X + (B X Xᵀ + C (X Xᵀ)²) X, from
 * x / ‖x‖.
 */
export function orthogonalize(x: Tensor, steps: number): Tensor {
  const isTall = x.shape[0]! > x.shape[1]!; // the product of the shorter side is the smaller one
  const wide = isTall ? transpose(x, 0, 1) : x;
  let next: Tensor = div(wide, maximum(norm(wide), LEAST_NORM));
  for (let step = 0; step < steps; step++) {
    const gram = mm(next, transpose(next, 0, 1));
    next = addmm(next, addmm(gram, gram, gram, { beta: B, alpha: C }), next, { beta: A });
  }
  return isTall ? transpose(next, 0, 1) : next;
}
