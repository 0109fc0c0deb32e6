/** A graph of nodes, checked and in the order in which it runs. */
import { lastElement } from "../core/collections.ts";
import { FileFormatError } from "../core/errors.ts";
import type { DType } from "../tensor/dtype.ts";
import { Tensor } from "../tensor/tensor.ts";
import { TidyScope, tidyScope } from "../tensor/tidy.ts";
import { Attributes, type AttributeValue } from "./attributes.ts";
import { Call, type Operator, Results, type Value } from "./call.ts";
import { castTo } from "./cast.ts";
import { NodeProblem, OnnxError } from "./errors.ts";
import { keepTypes } from "./kept_types.ts";
import { type OnnxFloat, ofOneDType } from "./one_dtype.ts";
import { Owners } from "./owners.ts";
import { indexed, type OnnxStrings } from "./strings.ts";

/** A node that is ready to run. */
export interface Step {
  readonly operator: string;
  /** The name of the node or, if it has none, of its first result. */
  readonly name: string;
  readonly compute: Operator;
  readonly attributes: Attributes;
  readonly opset: number;
  /** Whether the node calls a function that the model defines. */
  readonly isFunction?: boolean;
  /** The dtype that the option `dtype` chose for the model; undefined without the option. */
  readonly float?: OnnxFloat;
  /** Names of values; empty for an input that is left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** The values that no later step uses. The run drops its references to them. */
  readonly last: readonly string[];
}

/** The parts of a step that are required to compute it. */
type Computed = Omit<Step, "inputs" | "outputs" | "last" | "isFunction"> & { readonly outputs: readonly unknown[] };

/** Values by name. An inner graph also sees the values of its outer graphs. */
export class Scope {
  readonly #values = new Map<string, Value>();
  readonly #outer: Scope | undefined;

  constructor(outer?: Scope) {
    this.#outer = outer;
  }

  get(name: string): Value {
    return this.#values.has(name) || !this.#outer ? this.#values.get(name) : this.#outer.get(name);
  }

  set(name: string, value: Value): void {
    this.#values.set(name, value);
  }

  forget(name: string): void {
    this.#values.delete(name);
  }
}

/** The declared type of an output; a size of 0 is not declared. */
export interface OutputType {
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** Optional parts of a graph. */
interface GraphOptions {
  /** Types of the outputs, in their order; undefined for those that have no tensor type. */
  readonly types?: readonly (OutputType | undefined)[];
  /** Tensors of strings of the file, by name. */
  readonly texts?: ReadonlyMap<string, OnnxStrings>;
}

export class Graph {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly steps: readonly Step[];
  /** Tensors of the file by name. */
  readonly constants: ReadonlyMap<string, Tensor>;
  /** Types of the outputs, in their order; undefined for those that have no tensor type. */
  readonly outputTypes: readonly (OutputType | undefined)[];
  /** Tensors of strings of the file, by name. */
  readonly texts: ReadonlyMap<string, OnnxStrings>;

  constructor(
    inputs: readonly string[],
    outputs: readonly string[],
    steps: readonly Omit<Step, "last">[],
    constants: ReadonlyMap<string, Tensor>,
    { types = [], texts = new Map() }: GraphOptions = {},
  ) {
    this.inputs = inputs;
    this.outputs = outputs;
    this.constants = constants;
    this.outputTypes = types;
    this.texts = texts;
    this.steps = withLastUses(steps, outputs);
  }

  /**
   * Computes the graph's outputs.
   *
   * @param given a value for each input, in their order
   * @param constants replaces tensors of the file, such as those that are being trained
   *
   * @throws {OnnxError} if a node can't be computed
   */
  run(given: readonly Value[], outer?: Scope, constants = this.constants): readonly Value[] {
    const scope = new Scope(outer);
    for (const [name, value] of [...constants, ...this.texts]) scope.set(name, value);
    for (const [at, name] of this.inputs.entries()) if (at < given.length) scope.set(name, given[at]);
    for (const step of this.steps) runStep(step, scope);
    return this.outputs.map((name) => scope.get(name));
  }

  /**
   * Like {@link run}, but frees each intermediate result after its last use, because no gradient needs it.
   *
   * @param afterStep is called after each step
   */
  runOnce(
    given: readonly Value[],
    constants: ReadonlyMap<string, Tensor>,
    afterStep: () => void = () => undefined,
  ): readonly Value[] {
    const scope = new Scope();
    for (const [name, value] of [...constants, ...this.texts]) scope.set(name, value);
    for (const [at, name] of this.inputs.entries()) if (at < given.length) scope.set(name, given[at]);
    const [around, made, owners] = [tidyScope.get(), new TidyScope(), new Owners()];
    tidyScope.run(made, () => {
      for (const step of this.steps) {
        runFreeing(step, scope, made, owners);
        afterStep();
      }
    });
    const results = this.outputs.map((name) => scope.get(name));
    for (const each of results.flatMap(tensorsIn)) if (owners.has(each)) around?.add(each);
    return results;
  }
}

/** Runs a step, and frees results after their last use. Leaves tensors in sequences to the garbage collector. */
function runFreeing(step: Step, scope: Scope, made: TidyScope, owners: Owners): void {
  const inputs = step.inputs.map((name) => (name === "" ? undefined : scope.get(name)));
  const results = valuesOf(step, inputs, scope);
  owners.add(results, made.close(new Set(results.flatMap(tensorsIn)), null));
  for (const each of results.filter((value) => Array.isArray(value)).flatMap(tensorsIn)) owners.leave(each);
  for (const [at, name] of step.outputs.entries()) if (name !== "") scope.set(name, results[at]);
  for (const name of step.last) {
    owners.release(scope.get(name));
    scope.forget(name);
  }
}

/** Returns a tensor, or those of a sequence. */
export function tensorsIn(value: Value): Tensor[] {
  if (value instanceof Tensor) return [value];
  return Array.isArray(value) ? value.flatMap(tensorsIn) : [];
}

function runStep(step: Step, scope: Scope): void {
  const inputs = step.inputs.map((name) => (name === "" ? undefined : scope.get(name)));
  const results = valuesOf(step, inputs, scope);
  for (const [at, name] of step.outputs.entries()) if (name !== "") scope.set(name, results[at]);
  for (const name of step.last) scope.forget(name);
}

/** Computes a step's results. @throws {OnnxError} */
export function valuesOf(step: Computed, inputs: readonly Value[], scope: Scope): readonly Value[] {
  const { opset, outputs } = step;
  const run = (graph: Graph, values: readonly Value[]) => graph.run(values, scope);
  try {
    const isMixed = step.float !== undefined && step.attributes.graphs().length === 0;
    const given = isMixed ? ofOneDType(step.operator, inputs, step.float) : inputs;
    const texts = indexed(step.operator, given);
    const call = new Call(texts?.inputs ?? given, step.attributes, { opset, results: outputs.length, run });
    const result = step.compute(call);
    const results = result instanceof Results ? result.values : [result];
    return keepTypes(step.operator, given, texts ? texts.restore(results) : results, castTo);
  } catch (error) {
    if (error instanceof OnnxError || !(error instanceof Error)) throw error;
    const code = error instanceof NodeProblem ? "invalidNode" : "failed";
    throw new OnnxError(code, step.operator, step.name, error.message, { cause: error });
  }
}

/** Adds to each step the values that it uses last. An inner graph never drops values of the enclosing graphs. */
function withLastUses(steps: readonly Omit<Step, "last">[], outputs: readonly string[]): Step[] {
  const made = new Set(steps.flatMap((step) => step.outputs));
  const kept = new Set(outputs);
  const result: Step[] = [];
  for (const step of steps.toReversed()) {
    const used = [...step.inputs, ...step.outputs, ...capturedBy(step.attributes)];
    const last = [...new Set(used)].filter((name) => name !== "" && made.has(name) && !kept.has(name));
    for (const name of last) kept.add(name);
    result.push({ ...step, last });
  }
  return result.reverse();
}

/** Returns the names that graphs in attributes use. They may be values of this graph. */
export const capturedBy = (attributes: Attributes): string[] =>
  attributes
    .graphs()
    .flatMap((graph) => [
      ...graph.outputs,
      ...graph.steps.flatMap((step) => [...step.inputs, ...capturedBy(step.attributes)]),
    ]);

/**
 * Orders nodes so that each comes after those whose results it uses. The standard requires this order, but some tools
 * write others.
 *
 * @param known names that have values before the first node
 * @throws {FileFormatError} for a cycle, a value that no node computes, or a value that two nodes compute
 */
export function inOrder<T extends { readonly inputs: readonly string[]; readonly outputs: readonly string[] }>(
  nodes: readonly T[],
  known: (name: string) => boolean,
  captured: (node: T) => readonly string[],
  path: string,
): T[] {
  const makers = makersOf(nodes, path);
  const done = new Set<T>();
  const ordered: T[] = [];
  const waiting = nodes.toReversed();
  const open = new Set<T>();
  while (waiting.length > 0) {
    const node = lastElement(waiting);
    if (done.has(node)) {
      waiting.pop();
      continue;
    }
    const needed = [...node.inputs, ...captured(node)].filter((name) => name !== "" && !known(name));
    const absent = needed.find((name) => !makers.has(name) && node.inputs.includes(name));
    if (absent !== undefined) throw damaged(path, `no node computes the value "${absent}"`);
    const before = needed.flatMap((name) => makers.get(name) ?? []).filter((maker) => !done.has(maker));
    if (before.length === 0) {
      done.add(node);
      ordered.push(node);
      waiting.pop();
    } else if (open.has(node) && before.some((maker) => open.has(maker)))
      throw damaged(path, `the nodes form a cycle through the value "${node.outputs[0] ?? ""}"`);
    else {
      open.add(node);
      waiting.push(...before);
    }
  }
  return ordered;
}

/** Returns the node that computes each value. */
function makersOf<T extends { readonly outputs: readonly string[] }>(
  nodes: readonly T[],
  path: string,
): Map<string, T> {
  const makers = new Map<string, T>();
  for (const node of nodes)
    for (const name of node.outputs) {
      if (name === "") continue;
      if (makers.has(name)) throw damaged(path, `two nodes compute the value "${name}"`);
      makers.set(name, node);
    }
  return makers;
}

const damaged = (path: string, message: string): FileFormatError =>
  new FileFormatError("loadOnnx", "damaged", path, message);

/** Makes attributes from values by name. */
export const attributesOf = (values: Iterable<readonly [string, AttributeValue]>): Attributes =>
  new Attributes(new Map(values));
