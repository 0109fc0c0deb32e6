import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { sumOf } from "../reduction/reduce.reference.ts";
import type { LossAttributes, LossGradientAttributes } from "./loss_primitives.ts";
import type { LossName } from "./names.ts";

/** Of an element x, its target t, a weight w and the weight v of positive targets. */
type Formula = (x: number, t: number, w: number, v: number) => number;

interface Formulas {
  readonly value: Formula;
  /** Derivatives by x and by t. */
  readonly slopes: readonly [Formula, Formula];
}

/** log(1 + exp(−x)) */
const softplusOfNegative = (x: number): number => Math.log1p(Math.exp(-Math.abs(x))) + Math.max(-x, 0);
const sigmoid = (x: number): number => (x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x)));

const binaryCrossEntropy: Formulas = {
  value: (x, t, w, v) => w * ((1 - t) * x + (1 - t + v * t) * softplusOfNegative(x)),
  slopes: [
    (x, t, w, v) => w * ((1 - t) * sigmoid(x) - v * t * sigmoid(-x)),
    (x, _, w, v) => w * ((v === 1 ? 0 : (v - 1) * softplusOfNegative(x)) - x),
  ],
};

const formulas: Readonly<Record<LossName, Formulas>> = {
  squaredError: { value: (x, t) => (x - t) ** 2, slopes: [(x, t) => 2 * (x - t), (x, t) => 2 * (t - x)] },
  binaryCrossEntropy,
  weightedBinaryCrossEntropy: binaryCrossEntropy,
};

export const lossReference: Implementation<LossAttributes> = {
  run({ inputs, outputs: [output], attributes: { name, isSummed, factor } }) {
    const losses = applied(
      formulas[name].value,
      inputs.map((input) => toNumbers(input)),
    );
    store(output!, isSummed ? [sumOf([...losses]) * factor] : losses);
  },
};

export const lossGradientReference: Implementation<LossGradientAttributes> = {
  run({ inputs, outputs, attributes: { name, factor, needs } }) {
    const [scale, ...operands] = inputs.map((input) => toNumbers(input));
    const wanted = formulas[name].slopes.filter((_, at) => needs[at]);
    for (const [at, output] of outputs.entries())
      store(
        output,
        applied(wanted[at]!, operands).map((slope, element) => slope * scale![element]! * factor),
      );
  },
};

const applied = (formula: Formula, [x, t, w, v]: readonly Float64Array[]): Float64Array =>
  x!.map((value, at) => formula(value, t![at]!, w?.[at] ?? 1, v?.[at] ?? 1));
