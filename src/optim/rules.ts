/**
 * The rules by which optimizers change an element, as every backend computes them: in float32, of float64 parameters in float64. A parameter
 * p, its gradient g and its state become
 *
 *     g ← sign g + l2 p
 *
 *     sgd        m ← keep m + take1 g                                d = m, with nesterov g + keep m; without momentum d = g
 *     adam       m ← m + take1 (g - m),  v ← v + take2 (g² - v)      d = m / (√v root + eps); with amsgrad w ← max(w, v) in v's place
 *     lion       d = sign(m + take1 (g - m)),  m ← m + take2 (g - m)
 *
 *     p ← p - (shrink p + stepSize d)
 *
 * An average is written as a difference because 0.999, rounded to float32, would be another average: 1 - 0.999f differs from 0.001 by a hundred thousandth.
 * And with master weights, float32 in the state, these are p, and the parameter is their rounding.
 */

/** The order is that of the codes in `kernels/optim/rules.h` and `native/cpu/optim/update.h`. */
export const ruleNames = ["sgd", "sgdMomentum", "sgdNesterov", "adam", "adamAmsgrad", "lion"] as const;
export type RuleName = (typeof ruleNames)[number];

/** What each rule remembers of an element; `master` follows where there are master weights. */
export const ruleState = {
  sgd: [],
  sgdMomentum: ["momentum"],
  sgdNesterov: ["momentum"],
  adam: ["firstMoment", "secondMoment"],
  adamAmsgrad: ["firstMoment", "secondMoment", "maxSecondMoment"],
  lion: ["momentum"],
} as const satisfies Readonly<Record<RuleName, readonly string[]>>;

/** The numbers of a rule, in the order of the native interfaces; computed in float64, rounded once. */
export const coefficientNames = ["sign", "l2", "shrink", "stepSize", "keep", "take1", "take2", "root", "eps"] as const;
export type Coefficients = Readonly<Record<(typeof coefficientNames)[number], number>>;

/** Those that a rule leaves out. */
export const noCoefficients: Coefficients = {
  sign: 1,
  l2: 0,
  shrink: 0,
  stepSize: 0,
  keep: 0,
  take1: 0,
  take2: 0,
  root: 0,
  eps: 0,
};
