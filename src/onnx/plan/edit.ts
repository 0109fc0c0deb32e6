/** The steps of a plan during fusion. */
import type { Tensor } from "../../tensor/tensor.ts";
import type { Attributes, AttributeValue } from "../attributes.ts";
import type { Operator } from "../call.ts";
import { attributesOf } from "../graph.ts";
import { operatorNamed } from "../operators/index.ts";
import { NO_SLOT, type PlannedStep, type PlanParts, type Slot, type Watched } from "./plan.ts";

/** The parts of a plan, and which slots are weights. */
export interface Draft extends PlanParts {
  readonly weights: ReadonlyMap<number, { readonly name: string; readonly tensor: Tensor }>;
}

export class Edit {
  readonly slots: Slot[];
  readonly #draft: Draft;
  readonly #steps: Set<PlannedStep>;
  readonly #makers = new Map<number, PlannedStep>();
  readonly #users = new Map<number, Set<PlannedStep>>();
  readonly #watched: Watched[];
  readonly #replaced = new Map<PlannedStep, PlannedStep>();

  constructor(draft: Draft) {
    this.#draft = draft;
    this.slots = [...draft.slots];
    this.#steps = new Set(draft.steps);
    this.#watched = [...draft.watched];
    for (const step of draft.steps) this.#connect(step);
  }

  /** The current steps, in order. */
  steps(): PlannedStep[] {
    return this.#draft.steps.flatMap((step) => {
      let current: PlannedStep | undefined = step;
      while (current && this.#replaced.has(current)) current = this.#replaced.get(current);
      return current && this.#steps.has(current) ? [current] : [];
    });
  }

  parts(): PlanParts {
    const { inputs, outputs } = this.#draft;
    return { inputs, outputs, steps: this.#used(), slots: this.slots, watched: this.#watched };
  }

  maker(slot: number): PlannedStep | undefined {
    return this.#makers.get(slot);
  }

  /** Returns the steps that use a value; undefined if it is an output of the model or used by an inner graph. */
  users(slot: number): ReadonlySet<PlannedStep> | undefined {
    if (this.#draft.outputs.includes(slot)) return undefined;
    const users = this.#users.get(slot) ?? new Set();
    return [...users].some(({ captured }) => captured.some(([, each]) => each === slot)) ? undefined : users;
  }

  /** Returns the only step that uses a value. */
  onlyUser(slot: number): PlannedStep | undefined {
    const users = this.users(slot);
    return users?.size === 1 ? [...users][0] : undefined;
  }

  /** Returns a tensor that is the same in each run. */
  fixed(slot: number | undefined): Tensor | undefined {
    return slot === undefined || slot === NO_SLOT ? undefined : (this.slots[slot].fixed as Tensor | undefined);
  }

  /** Adds a tensor that was computed from the fixed tensors of `sources`. */
  fix(tensor: Tensor, sources: readonly number[]): number {
    for (const slot of sources) this.depends(slot);
    return this.slots.push({ isFixed: true, fixed: tensor, shape: tensor.shape, dtype: tensor.dtype }) - 1;
  }

  /** Records that the plan is valid only for the slot's current elements. */
  depends(slot: number): void {
    const weight = this.#draft.weights.get(slot);
    if (weight) this.#watched.push({ ...weight, version: weight.tensor.storage.version });
  }

  /** Replaces `last` by a step with its outputs, and removes `others`. */
  replace(last: PlannedStep, others: Iterable<PlannedStep>, step: PlannedStep): void {
    for (const each of [...others, last]) this.#disconnect(each);
    this.#steps.add(step);
    this.#replaced.set(last, step);
    this.#connect(step);
  }

  #connect(step: PlannedStep): void {
    for (const slot of step.outputs) this.#makers.set(slot, step);
    for (const slot of usedBy(step)) {
      const users = this.#users.get(slot) ?? new Set();
      this.#users.set(slot, users.add(step));
    }
  }

  #disconnect(step: PlannedStep): void {
    this.#steps.delete(step);
    for (const slot of usedBy(step)) this.#users.get(slot)?.delete(step);
  }

  /** Steps whose results are used. */
  #used(): PlannedStep[] {
    const needed = new Set(this.#draft.outputs);
    const used: PlannedStep[] = [];
    for (const step of this.steps().reverse()) {
      if (!step.outputs.some((slot) => needed.has(slot))) continue;
      for (const slot of usedBy(step)) needed.add(slot);
      used.push(step);
    }
    return used.reverse();
  }
}

const usedBy = (step: PlannedStep): number[] => [...step.inputs, ...step.captured.map(([, slot]) => slot)];

/** Returns a step of an operator of the standard, with the name and the outputs of `last`. */
export function standardStep(
  last: PlannedStep,
  operator: string,
  inputs: readonly number[],
  attributes: Readonly<Record<string, AttributeValue>> = {},
): PlannedStep {
  const compute = operatorNamed("", operator)!;
  return madeStep(last, operator, compute, inputs, attributesOf(Object.entries(attributes)));
}

/** Returns a step with the name and the outputs of `last`. */
export const madeStep = (
  { name, opset, outputs, float }: PlannedStep,
  operator: string,
  compute: Operator,
  inputs: readonly number[],
  attributes: Attributes,
): PlannedStep => ({
  name,
  opset,
  outputs,
  operator,
  compute,
  inputs,
  attributes,
  captured: [],
  ...(float && { float }),
});
