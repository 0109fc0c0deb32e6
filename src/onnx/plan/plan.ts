/** A graph for inputs of known shapes: values are numbered, and those that only depend on shapes are computed. */
import { compile } from "../../compile/compile.ts";
import { CompileError } from "../../compile/errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { TidyScope, tidyScope } from "../../tensor/tidy.ts";
import { boundCache, dropCache } from "../../tensor/usage.ts";
import type { Value } from "../call.ts";
import { Scope, type Step, valuesOf } from "../graph.ts";
import { kept } from "../kept_types.ts";
import { Owners } from "../owners.ts";

/** A step whose values are slots. */
export interface PlannedStep extends Pick<Step, "operator" | "name" | "compute" | "attributes" | "opset" | "float"> {
  /** Slots; {@link NO_SLOT} for an input that is left out. */
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
  /** Slots of the values that graphs in attributes use, by name. */
  readonly captured: readonly (readonly [name: string, slot: number])[];
}

export const NO_SLOT = -1;

/** The properties of a graph's value that the plan knows before a run. */
export interface Slot {
  /** The value, if it is the same in each run. */
  readonly fixed?: Value;
  readonly isFixed: boolean;
  /** The shape, if the value is a tensor. */
  readonly shape?: Shape | undefined;
  readonly dtype?: DType | undefined;
  /** The element type of an input, if it has no dtype. */
  readonly type?: number | undefined;
}

/** A weight that a plan uses. */
export interface Watched {
  readonly name: string;
  readonly tensor: Tensor;
  /** The version of the tensor's storage; undefined if no value of the plan was computed from the tensor. */
  readonly version: number | undefined;
}

export interface PlanParts {
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
  readonly steps: readonly PlannedStep[];
  readonly slots: readonly Slot[];
  readonly watched: readonly Watched[];
}

interface Ready extends PlannedStep {
  /** Slots that no later step uses. */
  readonly last: readonly number[];
}

/** The number of runs until a plan is a native program, which needs no free blocks. */
const EARLY_RUNS = 2;

export class Plan {
  readonly #parts: PlanParts;
  readonly #steps: readonly Ready[];
  readonly #fixed: readonly Value[];
  readonly #program = compile((given: readonly Value[]) => this.#runSteps(given));
  #isCompiled = true;
  #runs = 0;

  constructor(parts: PlanParts) {
    this.#parts = parts;
    this.#steps = withLastUses(parts);
    this.#fixed = parts.slots.map(({ fixed }) => fixed);
  }

  /** The number of steps that each run computes. */
  get length(): number {
    return this.#steps.length;
  }

  /** Whether the weights are those from which the plan was made, with the same elements. */
  isCurrent(weights: ReadonlyMap<string, Tensor>): boolean {
    return this.#parts.watched.every(
      ({ name, tensor, version }) =>
        weights.get(name) === tensor && (version === undefined || tensor.storage.version === version),
    );
  }

  /**
   * Computes the outputs. On the cpu backend, after two runs with equal inputs, it is one native call if steps read
   * only the elements of constants. Otherwise it runs step by step.
   *
   * @throws {OnnxError} if a node can't be computed
   */
  run(given: readonly Value[]): readonly Value[] {
    if (!this.#isCompiled) return this.#runSteps(given);
    if (this.#runs === EARLY_RUNS) this.#dropCache();
    try {
      return this.#program(given);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.#isCompiled = false;
      this.#program.reset();
      return this.#runSteps(given);
    }
  }

  /** Frees the cached blocks of single steps: the native program needs blocks of other sizes. */
  #dropCache(): void {
    this.#runs++;
    dropCache();
  }

  /** Frees the memory of the native program. The next run records it again. */
  freeProgram(): void {
    this.#program.reset();
  }

  /** Each intermediate result is freed after its last use. */
  #runSteps(given: readonly Value[]): readonly Value[] {
    const isEarly = this.#runs++ < EARLY_RUNS;
    const { inputs, outputs } = this.#parts;
    const slots = this.#fixed.slice();
    for (const [at, slot] of inputs.entries()) slots[slot] = withType(given[at], this.#parts.slots[slot].type);
    const around = tidyScope.get();
    const scope = new TidyScope();
    const owners = new Owners();
    tidyScope.run(scope, () => {
      for (const step of this.#steps) {
        const results = resultsOf(step, slots);
        owners.add(results, scope.close(new Set(results as readonly Tensor[]), null));
        for (const [at, slot] of step.outputs.entries()) if (slot !== NO_SLOT) slots[slot] = results[at];
        for (const slot of step.last) owners.release(slots[slot]);
        if (isEarly) boundCache();
      }
    });
    const results = outputs.map((slot) => slots[slot]);
    for (const result of results) if (result instanceof Tensor && owners.has(result)) around?.add(result);
    return results;
  }
}

/** Records an input's type again, because a native program passes new tensor objects to the steps. */
const withType = (value: Value, type: number | undefined): Value =>
  type !== undefined && value instanceof Tensor ? kept(value, type) : value;

/** Whether an error, or the error that caused it, says that steps can't be compiled. */
function isRefusal(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof CompileError) return true;
  return false;
}

function resultsOf(step: PlannedStep, slots: readonly Value[]): readonly Value[] {
  const inputs = step.inputs.map((slot) => (slot === NO_SLOT ? undefined : slots[slot]));
  const scope = new Scope();
  for (const [name, slot] of step.captured) scope.set(name, slots[slot]);
  return valuesOf(step, inputs, scope);
}

/** An unused result counts as last used by the step that computes it. */
function withLastUses({ steps, outputs, slots }: PlanParts): Ready[] {
  const kept = new Set(outputs);
  const ready: Ready[] = [];
  for (const step of steps.toReversed()) {
    const used = [...step.inputs, ...step.captured.map(([, slot]) => slot), ...step.outputs];
    const last = [...new Set(used)].filter((slot) => slot !== NO_SLOT && !slots[slot].isFixed && !kept.has(slot));
    for (const slot of last) kept.add(slot);
    ready.push({ ...step, last });
  }
  return ready.reverse();
}
