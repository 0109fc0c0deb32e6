import type { Implementation } from "../backend/backend.ts";
import { store, toNumbers } from "../backend/reference/elements.ts";
import { lastElement } from "../core/collections.ts";
import { Tensor } from "../tensor/tensor.ts";
import { operandsOf, type UpdateAttributes } from "./primitive.ts";
import { type Coefficients, type RuleName, ruleState } from "./rules.ts";

/** Returns the step d of an element with gradient g, and updates the element's state. */
type Rule = (g: number, state: Float64Array, k: Coefficients) => number;

/** A moving average in which the new value has weight 1 - β. */
const averaged = (x: number, oneMinusBeta: number, g: number): number => x + oneMinusBeta * (g - x);

const updateMomentum: Rule = (g, state, { momentum, oneMinusBeta1 }) => {
  state[0] = momentum * state[0] + oneMinusBeta1 * g;
  return state[0];
};

const larger = (a: number, b: number): number => (a >= b || Number.isNaN(a) ? a : b);

/** g divided by the root of its mean square, or of its variance if centered. */
function rootMeanSquare(g: number, state: Float64Array, k: Coefficients, isCentered: boolean): number {
  state[0] = averaged(state[0], k.oneMinusBeta2, g * g);
  if (!isCentered) return g / (Math.sqrt(state[0]) + k.eps);
  state[1] = averaged(state[1], k.oneMinusBeta2, g);
  return g / (Math.sqrt(larger(state[0] - state[1] * state[1], 0)) + k.eps);
}

function withMomentum(step: number, state: Float64Array, at: number, { momentum }: Coefficients): number {
  state[at] = momentum * state[at] + step;
  return state[at];
}

const updateMoments = (g: number, state: Float64Array, k: Coefficients): void => {
  state[0] = averaged(state[0], k.oneMinusBeta1, g);
  state[1] = averaged(state[1], k.oneMinusBeta2, g * g);
};

const rules: Readonly<Record<RuleName, Rule>> = {
  sgd: (g) => g,
  sgdMomentum: updateMomentum,
  sgdNesterov: (g, state, k) => g + k.momentum * updateMomentum(g, state, k),
  adam: (g, state, k) => {
    updateMoments(g, state, k);
    return state[0] / (Math.sqrt(state[1]) * k.biasCorrection + k.eps);
  },
  adamAmsgrad: (g, state, k) => {
    updateMoments(g, state, k);
    state[2] = Math.max(state[2], state[1]);
    return state[0] / (Math.sqrt(state[2]) * k.biasCorrection + k.eps);
  },
  lion: (g, state, { oneMinusBeta1, oneMinusBeta2 }) => {
    const step = Math.sign(averaged(state[0], oneMinusBeta1, g));
    state[0] = averaged(state[0], oneMinusBeta2, g);
    return step;
  },
  rmsprop: (g, state, k) => rootMeanSquare(g, state, k, false),
  rmspropMomentum: (g, state, k) => withMomentum(rootMeanSquare(g, state, k, false), state, 1, k),
  rmspropCentered: (g, state, k) => rootMeanSquare(g, state, k, true),
  rmspropCenteredMomentum: (g, state, k) => withMomentum(rootMeanSquare(g, state, k, true), state, 2, k),
  adagrad: (g, state, { eps }) => {
    state[0] = state[0] + g * g;
    return g / (Math.sqrt(state[0]) + eps);
  },
  adadelta: (g, state, { oneMinusBeta2, eps }) => {
    state[0] = averaged(state[0], oneMinusBeta2, g * g);
    const step = (Math.sqrt(state[1] + eps) / Math.sqrt(state[0] + eps)) * g;
    state[1] = averaged(state[1], oneMinusBeta2, step * step);
    return step;
  },
  adamax: (g, state, { oneMinusBeta1, momentum, eps }) => {
    state[0] = averaged(state[0], oneMinusBeta1, g);
    state[1] = larger(momentum * state[1], Math.abs(g) + eps);
    return state[0] / state[1];
  },
  nadam: (g, state, k) => {
    updateMoments(g, state, k);
    return (state[0] + k.momentum * g) / (Math.sqrt(state[1]) * k.biasCorrection + k.eps);
  },
  radam: (g, state, k) => {
    updateMoments(g, state, k);
    return state[0] / (k.biasCorrection === 0 ? 1 : Math.sqrt(state[1]) + k.eps);
  },
};

/** Updates parameters and state in float64 from the stored values, and rounds the results once. */
export const updateReference: Implementation<UpdateAttributes> = {
  run({ inputs, outputs, attributes }) {
    const { stateBefore, stateAfter, before, gradients, after } = operandsOf(inputs, outputs, attributes);
    for (const [index, { start, coefficients }] of attributes.members.entries()) {
      const rows = (state: Tensor | undefined) => rowsOf(state, attributes, start, after[index].size);
      updateOne(attributes, coefficients, {
        before: before[index],
        gradient: gradients[index],
        after: after[index],
        stateBefore: rows(stateBefore),
        stateAfter: rows(stateAfter),
      });
    }
  },
};

/** A parameter's range in each plane of the state. */
const rowsOf = (state: Tensor | undefined, { plane }: UpdateAttributes, start: number, count: number): Tensor[] =>
  Array.from(
    { length: state?.shape[0] ?? 0 },
    (_, row) => new Tensor(state!.storage, state!.dtype, [count], [1], state!.offset + row * plane + start),
  );

interface Member {
  readonly before: Tensor;
  readonly gradient: Tensor;
  readonly after: Tensor;
  readonly stateBefore: readonly Tensor[];
  readonly stateAfter: readonly Tensor[];
}

function updateOne({ rule, hasMaster }: UpdateAttributes, k: Coefficients, member: Member): void {
  const state = member.stateBefore.map((row) => toNumbers(row));
  const p = hasMaster ? lastElement(state) : toNumbers(member.before);
  const g = toNumbers(member.gradient);
  const planes = ruleState[rule].length;
  const values = new Float64Array(planes);
  for (let i = 0; i < p.length; i++) {
    for (let row = 0; row < planes; row++) values[row] = state[row][i];
    const d = rules[rule](k.sign * g[i] + k.l2 * p[i], values, k);
    p[i] = p[i] - (k.decoupledDecay * p[i] + k.stepSize * d);
    for (let row = 0; row < planes; row++) state[row][i] = values[row];
  }
  for (const [row, target] of member.stateAfter.entries()) store(target, state[row]);
  store(member.after, hasMaster ? toNumbers(lastElement(member.stateAfter)) : p);
}
