import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { sumOf } from "../../backend/reference/sum.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { LossAttributes, LossGradientAttributes, LossName } from "./primitive.ts";

/** A function of an element x, its target t, a third and a fourth operand w and v, and the parameters p and q. */
type Formula = (x: number, t: number, w: number, v: number, p: number, q: number) => number;

interface Formulas {
  readonly value: Formula;
  /** The derivatives with respect to x, t and w. */
  readonly derivatives: readonly Formula[];
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

const probabilityEntropy: Formula = (x, t) => (t - 1) * limited(Math.log1p(-x)) - t * limited(Math.log(x));
const probabilityCrossEntropy: Formulas = {
  value: (x, t, w) => w * probabilityEntropy(x, t, 1, 1, 0, 0),
  derivatives: [
    (x, t, w) => (w * (x - t)) / Math.max(x * (1 - x), 1e-12),
    (x, _, w) => w * (Math.log1p(-x) - Math.log(x)),
    probabilityEntropy,
  ],
};

/** Limits x to ±p. */
const bounded = (x: number, p: number): number => Math.min(Math.max(x, -p), p);
/** 1 if the loss of a pair is above 0, else 0. */
const ranked: Formula = (x, t, w, _, p) => (p - w * (x - t) > 0 ? 1 : 0);

/** Formulas whose derivatives with respect to x and t have opposite signs. */
const ofDifference = (value: (d: number, p: number, q: number) => number, slope: typeof value): Formulas => ({
  value: (x, t, _w, _v, p, q) => value(x - t, p, q),
  derivatives: [(x, t, _w, _v, p, q) => slope(x - t, p, q), (x, t, _w, _v, p, q) => -slope(x - t, p, q)],
});

const formulas: Readonly<Record<LossName, Formulas>> = {
  squaredError: ofDifference(
    (d) => d ** 2,
    (d) => 2 * d,
  ),
  absoluteError: ofDifference(Math.abs, Math.sign),
  huber: ofDifference(
    (d, p, q) => q * bounded(d, p) * (d - bounded(d, p) / 2),
    (d, p, q) => q * bounded(d, p),
  ),
  binaryCrossEntropy,
  weightedBinaryCrossEntropy: binaryCrossEntropy,
  probabilityCrossEntropy,
  weightedProbabilityCrossEntropy: probabilityCrossEntropy,
  softMargin: {
    value: (x, t) => softplusOfNegative(t * x),
    derivatives: [(x, t) => -t * sigmoid(-t * x), (x, t) => -x * sigmoid(-t * x)],
  },
  hinge: {
    value: (x, t, _w, _v, p) => (t === 1 ? 0 : Math.max(p - x, 0)) + (t === -1 ? 0 : x),
    derivatives: [(x, t, _w, _v, p) => (t === -1 ? 0 : 1) - (t !== 1 && p - x > 0 ? 1 : 0), () => 0],
  },
  ranking: {
    value: (x, t, w, _, p) => Math.max(p - w * (x - t), 0),
    derivatives: [
      (x, t, w, v, p, q) => -w * ranked(x, t, w, v, p, q),
      (x, t, w, v, p, q) => w * ranked(x, t, w, v, p, q),
      (x, t, w, v, p, q) => (t - x) * ranked(x, t, w, v, p, q),
    ],
  },
  divergence: {
    value: (x, t) => (t === 0 ? 0 : t * Math.log(t)) - t * x,
    derivatives: [(_, t) => -t, (x, t) => (t === 0 ? Number.NaN : Math.log(t) + 1) - x],
  },
  logDivergence: {
    value: (x, t) => Math.exp(t) * (t - x),
    derivatives: [(_, t) => -Math.exp(t), (x, t) => Math.exp(t) * (t - x + 1)],
  },
  poissonOfLog: {
    value: (x, t) => Math.exp(x) - t * x,
    derivatives: [(x, t) => Math.exp(x) - t, (x) => -x],
  },
  poisson: {
    value: (x, t, _w, _v, p) => x - t * Math.log(x + p),
    derivatives: [(x, t, _w, _v, p) => 1 - t / (x + p), (x, _t, _w, _v, p) => -Math.log(x + p)],
  },
  gaussian: {
    value: (x, t, w, _, p, q) => (Math.log(Math.max(w, p)) + (x - t) ** 2 / Math.max(w, p)) / 2 + q,
    derivatives: [
      (x, t, w, _, p) => (x - t) / Math.max(w, p),
      (x, t, w, _, p) => (t - x) / Math.max(w, p),
      (x, t, w, _, p) => (1 - (x - t) ** 2 / Math.max(w, p)) / (2 * Math.max(w, p)),
    ],
  },
};

export const lossReference: Implementation<LossAttributes, readonly Tensor[], [Tensor]> = {
  run({ inputs, outputs: [output], attributes: { loss, isSummed, factor, parameters } }) {
    const losses = applied(
      formulas[loss].value,
      inputs.map((input) => toNumbers(input)),
      parameters,
    );
    store(output, isSummed ? [sumOf([...losses]) * factor] : losses);
  },
};

export const lossGradientReference: Implementation<LossGradientAttributes> = {
  run({ inputs, outputs, attributes: { loss, factor, needs, parameters } }) {
    const [scale, ...operands] = inputs.map((input) => toNumbers(input));
    const needed = formulas[loss].derivatives.filter((_, at) => needs[at]);
    for (const [at, output] of outputs.entries())
      store(
        output,
        applied(needed[at], operands, parameters).map((derivative, element) => derivative * scale[element] * factor),
      );
  },
};

const applied = (
  formula: Formula,
  [x, t, w, v]: readonly Float64Array[],
  [p, q]: LossAttributes["parameters"],
): Float64Array => x.map((value, at) => formula(value, t[at], w?.[at] ?? 1, v?.[at] ?? 1, p, q));
