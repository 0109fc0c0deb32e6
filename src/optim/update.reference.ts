import type { Implementation } from "../backend/backend.ts";
import { store, toNumbers } from "../backend/reference/elements.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type Coefficients, type RuleName, ruleState } from "./rules.ts";
import { operandsOf, type UpdateAttributes } from "./update.ts";

/** The step d of an element with the gradient g; what is remembered of it becomes what it is afterwards. */
type Rule = (g: number, memory: Float64Array, k: Coefficients) => number;

const averaged = (x: number, take: number, g: number): number => x + take * (g - x);

const momentum: Rule = (g, memory, { keep, take1 }) => {
  memory[0] = keep * memory[0]! + take1 * g;
  return memory[0];
};

const moments = (g: number, memory: Float64Array, k: Coefficients): void => {
  memory[0] = averaged(memory[0]!, k.take1, g);
  memory[1] = averaged(memory[1]!, k.take2, g * g);
};

const rules: Readonly<Record<RuleName, Rule>> = {
  sgd: (g) => g,
  sgdMomentum: momentum,
  sgdNesterov: (g, memory, k) => g + k.keep * momentum(g, memory, k),
  adam: (g, memory, k) => {
    moments(g, memory, k);
    return memory[0]! / (Math.sqrt(memory[1]!) * k.root + k.eps);
  },
  adamAmsgrad: (g, memory, k) => {
    moments(g, memory, k);
    memory[2] = Math.max(memory[2]!, memory[1]!);
    return memory[0]! / (Math.sqrt(memory[2]) * k.root + k.eps);
  },
  lion: (g, memory, { take1, take2 }) => {
    const step = Math.sign(averaged(memory[0]!, take1, g));
    memory[0] = averaged(memory[0]!, take2, g);
    return step;
  },
};

/** In float64, from the rounded values of before to the rounded ones of afterwards. */
export const updateReference: Implementation<UpdateAttributes> = {
  run({ inputs, outputs, attributes }) {
    const { stateBefore, stateAfter, before, gradients, after } = operandsOf(inputs, outputs, attributes);
    for (const [index, { start, coefficients }] of attributes.members.entries()) {
      const rows = (state: Tensor | undefined) => rowsOf(state, attributes, start, after[index]!.size);
      updateOne(attributes, coefficients, {
        before: before[index]!,
        gradient: gradients[index]!,
        after: after[index]!,
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
  const p = hasMaster ? state.at(-1)! : toNumbers(member.before);
  const g = toNumbers(member.gradient);
  const remembered = ruleState[rule].length;
  const memory = new Float64Array(remembered);
  for (let i = 0; i < p.length; i++) {
    for (let row = 0; row < remembered; row++) memory[row] = state[row]![i]!;
    const d = rules[rule](k.sign * g[i]! + k.l2 * p[i]!, memory, k);
    p[i] = p[i]! - (k.shrink * p[i]! + k.stepSize * d);
    for (let row = 0; row < remembered; row++) state[row]![i] = memory[row]!;
  }
  for (const [row, target] of member.stateAfter.entries()) store(target, state[row]!);
  store(member.after, hasMaster ? toNumbers(member.stateAfter.at(-1)!) : p);
}
