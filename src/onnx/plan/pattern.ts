/**
 * Finds expressions of several nodes. Exporters write functions in this form if ONNX has no operator for them, or had
 * none in earlier versions.
 */
import { isFloat } from "../../tensor/dtype.ts";
import { numbersOf } from "../call.ts";
import type { Edit } from "./edit.ts";
import type { PlannedStep } from "./plan.ts";

/** An expression: a variable, a number, or an operator of expressions. */
export type Pattern = Variable | Constant | Node;
interface Variable {
  readonly variable: string;
}
interface Constant {
  readonly value: number;
}
interface Node {
  readonly operator: string;
  readonly inputs: readonly Pattern[];
  /** A condition on the step. */
  readonly where?: ((step: PlannedStep, edit: Edit) => boolean) | undefined;
}

export const variable = (name: string): Variable => ({ variable: name });
export const constant = (value: number): Constant => ({ value });
export const node = (operator: string, inputs: readonly Pattern[], where?: Node["where"]): Node => ({
  operator,
  inputs,
  where,
});

/** A match: the slots of variables, and the steps. The first step has the result. */
export interface Match {
  readonly variables: ReadonlyMap<string, number>;
  readonly steps: readonly PlannedStep[];
}

const COMMUTATIVE: ReadonlySet<string> = new Set(["Add", "Mul"]);

/**
 * Matches the expression that ends with a step. Steps in between are not matched if others use their results.
 */
export function match(edit: Edit, last: PlannedStep, pattern: Node): Match | undefined {
  for (const found of ofStep(edit, last, pattern, { variables: new Map(), steps: [] })) {
    const steps = new Set(found.steps);
    const isInside = (step: PlannedStep) =>
      step.outputs.every((slot) => {
        const users = edit.users(slot);
        return users !== undefined && [...users].every((user) => steps.has(user));
      });
    if ([...steps].every((step) => step === last || isInside(step))) return { ...found, steps: [...steps] };
  }
  return undefined;
}

function* ofStep(edit: Edit, step: PlannedStep, pattern: Node, before: Match): Generator<Match> {
  if (step.operator !== pattern.operator || pattern.where?.(step, edit) === false) return;
  const steps = [...before.steps, step];
  const { inputs } = pattern;
  yield* ofSlots(edit, step.inputs, inputs, { ...before, steps });
  if (COMMUTATIVE.has(step.operator)) yield* ofSlots(edit, step.inputs, inputs.toReversed(), { ...before, steps });
}

function* ofSlots(
  edit: Edit,
  slots: readonly number[],
  [first, ...others]: readonly Pattern[],
  before: Match,
): Generator<Match> {
  if (!first) yield before;
  else
    for (const found of ofSlot(edit, slots[0] ?? -1, first, before))
      yield* ofSlots(edit, slots.slice(1), others, found);
}

function* ofSlot(edit: Edit, slot: number, pattern: Pattern, before: Match): Generator<Match> {
  if ("variable" in pattern) {
    const bound = before.variables.get(pattern.variable);
    if (bound === undefined) yield { ...before, variables: new Map([...before.variables, [pattern.variable, slot]]) };
    else if (bound === slot) yield before;
  } else if ("value" in pattern) {
    if (isNear(scalarOf(edit, slot), pattern.value)) yield before;
  } else {
    const step = edit.maker(slot);
    if (step) yield* ofStep(edit, step, pattern, before);
  }
}

/** Exporters write constants in float32 or float16. */
const isNear = (a: number | undefined, b: number): boolean =>
  a !== undefined && (a === b || Math.abs(a - b) <= 1e-6 * Math.abs(b));

/** Returns the element of a fixed tensor of one float. The plan then depends on it. */
export function scalarOf(edit: Edit, slot: number): number | undefined {
  const tensor = edit.fixed(slot);
  if (tensor?.size !== 1 || !isFloat(tensor.dtype)) return undefined;
  edit.depends(slot);
  return numbersOf(tensor)[0];
}
