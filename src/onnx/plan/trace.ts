/** Makes plans: runs a graph once, and records which steps depend on more than shapes. */
import { Tensor } from "../../tensor/tensor.ts";
import { TidyScope, tidy, tidyScope } from "../../tensor/tidy.ts";
import { boundCache } from "../../tensor/usage.ts";
import { numbersOf, type Value } from "../call.ts";
import { capturedBy, type Graph, Scope, type Step, tensorsIn, valuesOf } from "../graph.ts";
import { keptType } from "../kept_types.ts";
import { simplified } from "./fuse.ts";
import { NO_SLOT, Plan, type PlannedStep, type Slot, type Watched } from "./plan.ts";

/** Operators whose results differ from run to run. */
const RANDOM: ReadonlySet<string> = new Set([
  "Bernoulli",
  "Dropout",
  "Multinomial",
  "RandomNormal",
  "RandomNormalLike",
  "RandomUniform",
  "RandomUniformLike",
]);
/** Operators that read only the shape of their input. */
const OF_SHAPES: ReadonlySet<string> = new Set(["Shape", "Size"]);
/** Operators that return their input if it already has the right type. */
const UNCHANGED: ReadonlySet<string> = new Set(["Cast", "Identity"]);
/** Larger results are computed in each run. Otherwise, files with compressed weights would exhaust memory. */
const MOST_ELEMENTS = 1 << 20;
/** Inputs up to this size have their elements in the key of a plan. */
const MOST_KEY_ELEMENTS = 8;

/**
 * Returns a text that is equal for inputs that one plan can compute; undefined if there is no plan for them. It
 * includes the values of small integer inputs, such as a sampling rate, because conditions depend on them.
 */
export function planKey(given: readonly Value[]): string | undefined {
  if (given.some((value) => value !== undefined && !(value instanceof Tensor))) return undefined;
  return given.map((value) => (value instanceof Tensor ? keyOf(value) : "none")).join(";");
}

const keyOf = (x: Tensor): string => `${x.dtype}${keptType(x) ?? ""}[${x.shape}]${isKeyed(x) ? numbersOf(x) : ""}`;
const isKeyed = (x: Tensor): boolean =>
  x.size <= MOST_KEY_ELEMENTS && (x.dtype === "int64" || x.dtype === "int32" || x.dtype === "bool");

/**
 * Makes the plan for these inputs, whose shapes have a {@link planKey}. It computes the whole graph. Returns undefined
 * for graphs with sequences, because their tensors may have several owners.
 *
 * @throws {OnnxError} if a node can't be computed
 */
export function planFor(graph: Graph, given: readonly Value[], weights: ReadonlyMap<string, Tensor>): Plan | undefined {
  const kept = new Set<Tensor>();
  return tidy(() => {
    const trace = new Trace();
    const inputs = graph.inputs.map((_, at) => trace.input(given[at]));
    const names = new Map(graph.inputs.map((name, at) => [name, inputs[at]]));
    const outputs = trace.graph(graph, names, weights);
    if (!trace.isPlain) return [];
    const plan = simplified({ inputs, outputs, ...trace });
    for (const { fixed } of plan.slots) if (fixed instanceof Tensor) kept.add(fixed);
    return [new Plan(plan), ...kept] as const;
  })[0];
}

class Trace {
  readonly steps: PlannedStep[] = [];
  readonly slots: Slot[] = [];
  readonly watched: Watched[] = [];
  /** Whether no step has sequences. */
  isPlain = true;
  readonly #values: Value[] = [];
  /** The number of names by which later steps may read each slot. */
  readonly #names = new Map<number, number>();
  readonly weights = new Map<number, { name: string; tensor: Tensor }>();

  /** The caller's and the file's tensors. The trace does not free them. */
  readonly #given = new Set<Value>();

  input(value: Value): number {
    this.#given.add(value);
    return this.#add(value, value === undefined || (value instanceof Tensor && isKeyed(value)));
  }

  /** Runs a graph. `names` has the slots of the values around it. Returns the slots of its outputs. */
  graph(graph: Graph, names: ReadonlyMap<string, number>, constants: ReadonlyMap<string, Tensor>): number[] {
    const scope = new Map(names);
    for (const [name, tensor] of constants) {
      const slot = this.#add(tensor, true);
      this.#given.add(tensor);
      scope.set(name, slot);
      if (constants !== graph.constants) this.weights.set(slot, { name, tensor });
    }
    for (const [name, value] of graph.texts) scope.set(name, this.#add(value, true));
    for (const step of graph.steps) {
      this.#step(step, scope);
      for (const name of step.last) this.#forget(scope, name);
      boundCache();
    }
    return graph.outputs.map((name) => scope.get(name)!);
  }

  #step(step: Step, scope: Map<string, number>): void {
    const inputs = step.inputs.map((name) => (name === "" ? NO_SLOT : scope.get(name)!));
    const branch = this.#branchOf(step, inputs);
    const results = branch ? this.graph(branch, scope, branch.constants) : this.#compute(step, inputs, scope);
    for (const [at, name] of step.outputs.entries()) {
      if (name === "") continue;
      scope.set(name, results[at]);
      this.#names.set(results[at], (this.#names.get(results[at]) ?? 0) + 1);
    }
  }

  /** Frees a value that no later step reads. The plan needs only its shape. */
  #forget(scope: ReadonlyMap<string, number>, name: string): void {
    const slot = scope.get(name)!;
    const count = (this.#names.get(slot) ?? 0) - 1;
    this.#names.set(slot, count);
    const value = this.#values[slot];
    if (count > 0 || this.slots[slot].isFixed || this.#given.has(value) || !(value instanceof Tensor)) return;
    this.#values[slot] = undefined;
    if (!this.#values.includes(value)) value.dispose();
  }

  /** Returns the branch that a known condition selects. */
  #branchOf(step: Step, [condition = NO_SLOT]: readonly number[]): Graph | undefined {
    if (step.operator !== "If" || step.isFunction || !this.#isFixed(condition)) return undefined;
    return step.attributes.graph(numbersOf(this.#values[condition] as Tensor)[0] ? "then_branch" : "else_branch");
  }

  #compute(step: Step, inputs: readonly number[], scope: ReadonlyMap<string, number>): number[] {
    const captured = capturedBy(step.attributes).flatMap((name) =>
      scope.has(name) ? [[name, scope.get(name)!] as const] : [],
    );
    const outer = new Scope();
    for (const [name, slot] of captured) outer.set(name, this.#values[slot]);
    const given = inputs.map((slot) => this.#values[slot]);
    const results = this.#valuesOf(step, given, outer);
    const same = UNCHANGED.has(step.operator) && results[0] === given[0] ? inputs[0] : undefined;
    if (same !== undefined) return [same];
    const isFixed = this.#isFixedStep(step, inputs, results);
    const outputs = results.map((value) => this.#add(value, isFixed));
    this.isPlain &&= [...given, ...results].every((value) => value === undefined || value instanceof Tensor);
    if (isFixed) for (const slot of inputs) this.#watch(slot, true);
    else {
      const named = step.outputs.map((name, at) => (name === "" ? NO_SLOT : (outputs[at] ?? NO_SLOT)));
      for (const slot of [...inputs, ...captured.map(([, each]) => each)]) this.#watch(slot, false);
      this.steps.push({ ...step, inputs, outputs: named, captured });
    }
    return outputs;
  }

  /** Computes a step's results, and frees all other tensors that the step has created. */
  #valuesOf(step: Step, given: readonly Value[], outer: Scope): readonly Value[] {
    const scope = new TidyScope();
    const results = tidyScope.run(scope, () => valuesOf(step, given, outer));
    scope.close(new Set(results.flatMap(tensorsIn)), tidyScope.get());
    return results;
  }

  #isFixedStep(step: Step, inputs: readonly number[], results: readonly Value[]): boolean {
    if (step.isFunction || RANDOM.has(step.operator) || step.attributes.graphs().length > 0) return false;
    if (!results.every((value) => value instanceof Tensor && value.size <= MOST_ELEMENTS)) return false;
    return OF_SHAPES.has(step.operator) || inputs.every((slot) => slot === NO_SLOT || this.#isFixed(slot));
  }

  #isFixed(slot: number): boolean {
    return this.slots[slot]?.isFixed === true;
  }

  #add(value: Value, isFixed: boolean): number {
    this.#values.push(value);
    const described = value instanceof Tensor ? { shape: value.shape, dtype: value.dtype, type: keptType(value) } : {};
    return this.slots.push({ isFixed, ...(isFixed ? { fixed: value } : {}), ...described }) - 1;
  }

  #watch(slot: number, isComputed: boolean): void {
    const weight = this.weights.get(slot);
    if (!weight) return;
    this.watched.push({ ...weight, version: isComputed ? weight.tensor.storage.version : undefined });
  }
}
