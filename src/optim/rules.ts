/**
 * The elementwise update rules of optimizers, as every backend computes them: in float32, or in float64 for float64
 * parameters. A parameter p, its gradient g and its state become
 *
 *     g ← sign g + l2 p
 *
 *     sgd     m ← momentum m + oneMinusBeta1 g          d = m; with nesterov g + momentum m; without momentum d = g
 *     adam    m ← m + oneMinusBeta1 (g - m)
 *             v ← v + oneMinusBeta2 (g² - v)            d = m / (√v biasCorrection + eps)
 *             with amsgrad w ← max(w, v)                d = m / (√w biasCorrection + eps)
 *     lion    d = sign(m + oneMinusBeta1 (g - m)),  m ← m + oneMinusBeta2 (g - m)
 *     rmsprop v ← v + oneMinusBeta2 (g² - v)            d = g / (√v + eps)
 *             centered m ← m + oneMinusBeta2 (g - m)    d = g / (√max(v - m², 0) + eps)
 *             with momentum b ← momentum b + d          d = b
 *     adagrad v ← v + g²                                d = g / (√v + eps)
 *     adadelta  v ← v + oneMinusBeta2 (g² - v)          d = √(u + eps) / √(v + eps) g
 *             u ← u + oneMinusBeta2 (d² - u)
 *     adamax  m as in adam, u ← max(momentum u, |g| + eps)   d = m / u
 *     nadam   m, v as in adam                           d = (m + momentum g) / (√v biasCorrection + eps)
 *     radam   m, v as in adam                           d = m / (√v + eps), if biasCorrection is 0 d = m
 *
 *     p ← p - (decoupledDecay p + stepSize d)
 *
 * Averages use 1 - β as the coefficient because rounding 0.999 to float32 would change the average: 1 - 0.999f differs
 * from 0.001 by a hundred thousandth. With master weights, which are float32 in the state, p is the master weight, and
 * the parameter is its rounded value.
 */
import { enumeration, type NameOf } from "../backend/enumeration.ts";

export const updateRules = enumeration("UpdateRule", [
  "sgd",
  "sgdMomentum",
  "sgdNesterov",
  "adam",
  "adamAmsgrad",
  "lion",
  "rmsprop",
  "rmspropMomentum",
  "rmspropCentered",
  "rmspropCenteredMomentum",
  "adagrad",
  "adadelta",
  "adamax",
  "nadam",
  "radam",
]);
export type RuleName = NameOf<typeof updateRules>;

/** The state that each rule keeps per element; `master` follows if there are master weights. */
export const ruleState = {
  sgd: [],
  sgdMomentum: ["momentum"],
  sgdNesterov: ["momentum"],
  adam: ["firstMoment", "secondMoment"],
  adamAmsgrad: ["firstMoment", "secondMoment", "maxSecondMoment"],
  lion: ["momentum"],
  rmsprop: ["squareAverage"],
  rmspropMomentum: ["squareAverage", "momentum"],
  rmspropCentered: ["squareAverage", "gradientAverage"],
  rmspropCenteredMomentum: ["squareAverage", "gradientAverage", "momentum"],
  adagrad: ["squareSum"],
  adadelta: ["squareAverage", "stepAverage"],
  adamax: ["firstMoment", "infinityNorm"],
  nadam: ["firstMoment", "secondMoment"],
  radam: ["firstMoment", "secondMoment"],
} as const satisfies Readonly<Record<RuleName, readonly string[]>>;

/**
 * The coefficients of a rule, computed in float64 and rounded once. `oneMinusBeta1` is 1 - dampening in SGD,
 * `decoupledDecay` the learning rate times the weight decay, `biasCorrection` 1 / √(1 - β₂ᵗ). `momentum` is β₂ in
 * Adamax, and the weight of g relative to m in NAdam.
 */
export const coefficientNames = [
  "sign",
  "l2",
  "decoupledDecay",
  "stepSize",
  "momentum",
  "oneMinusBeta1",
  "oneMinusBeta2",
  "biasCorrection",
  "eps",
] as const;
export type Coefficients = Readonly<Record<(typeof coefficientNames)[number], number>>;

/** The values of coefficients that a rule does not use. */
export const noCoefficients: Coefficients = {
  sign: 1,
  l2: 0,
  decoupledDecay: 0,
  stepSize: 0,
  momentum: 0,
  oneMinusBeta1: 0,
  oneMinusBeta2: 0,
  biasCorrection: 0,
  eps: 0,
};
