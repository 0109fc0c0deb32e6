import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { sumOf } from "../../backend/reference/sum.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { LossAttributes, LossGradientAttributes, LossName } from "./primitive.ts";

/** A function of an element x, its target t, a weight w and the weight v of positive targets. */
type Formula = (x: number, t: number, w: number, v: number) => number;

interface Formulas {
  readonly value: Formula;
  /** The derivatives with respect to x and to t. */
  readonly derivatives: readonly [Formula, Formula];
}

/** Computes log(1 + exp(−x)). */
const softplusOfNegative = (x: number): number => Math.log1p(Math.exp(-Math.abs(x))) + Math.max(-x, 0);
const sigmoid = (x: number): number => (x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x)));

const binaryCrossEntropy: Formulas = {
  value: (x, t, w, v) => w * ((1 - t) * x + (1 - t + v * t) * softplusOfNegative(x)),
  derivatives: [
    (x, t, w, v) => w * ((1 - t) * sigmoid(x) - v * t * sigmoid(-x)),
    (x, _, w, v) => w * ((v === 1 ? 0 : (v - 1) * softplusOfNegative(x)) - x),
  ],
};

/** Limits a logarithm, as PyTorch does. */
const limited = (logarithm: number): number => Math.max(logarithm, -100);

const probabilityCrossEntropy: Formulas = {
  value: (x, t) => (t - 1) * limited(Math.log1p(-x)) - t * limited(Math.log(x)),
  derivatives: [(x, t) => (x - t) / Math.max(x * (1 - x), 1e-12), (x) => Math.log1p(-x) - Math.log(x)],
};

const formulas: Readonly<Record<LossName, Formulas>> = {
  squaredError: { value: (x, t) => (x - t) ** 2, derivatives: [(x, t) => 2 * (x - t), (x, t) => 2 * (t - x)] },
  binaryCrossEntropy,
  weightedBinaryCrossEntropy: binaryCrossEntropy,
  probabilityCrossEntropy,
};

export const lossReference: Implementation<LossAttributes, readonly Tensor[], [Tensor]> = {
  run({ inputs, outputs: [output], attributes: { loss, isSummed, factor } }) {
    const losses = applied(
      formulas[loss].value,
      inputs.map((input) => toNumbers(input)),
    );
    store(output, isSummed ? [sumOf([...losses]) * factor] : losses);
  },
};

export const lossGradientReference: Implementation<LossGradientAttributes> = {
  run({ inputs, outputs, attributes: { loss, factor, needs } }) {
    const [scale, ...operands] = inputs.map((input) => toNumbers(input));
    const needed = formulas[loss].derivatives.filter((_, at) => needs[at]);
    for (const [at, output] of outputs.entries())
      store(
        output,
        applied(needed[at], operands).map((derivative, element) => derivative * scale[element] * factor),
      );
  },
};

const applied = (formula: Formula, [x, t, w, v]: readonly Float64Array[]): Float64Array =>
  x.map((value, at) => formula(value, t[at], w?.[at] ?? 1, v?.[at] ?? 1));
