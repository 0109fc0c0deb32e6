/** A call of an operator: the inputs and attributes that a node passes to it. */
import { Tensor } from "../tensor/tensor.ts";
import type { Attributes } from "./attributes.ts";
import { NodeProblem } from "./errors.ts";
import type { Graph } from "./graph.ts";
import type { OnnxMap, OnnxStrings } from "./strings.ts";

/** A value in a graph: a tensor, strings, a sequence, a map from labels to numbers, or an empty optional. */
export type Value = Tensor | OnnxStrings | readonly Value[] | OnnxMap | undefined;

export interface CallContext {
  /** The version of the operator set that the node's domain has in the model. */
  readonly opset: number;
  /** The number of results that the node names, including empty names before the last nonempty one. */
  readonly results: number;
  /** Runs a graph in an attribute. It sees the values of the graphs around it. */
  readonly run: (graph: Graph, inputs: readonly Value[]) => readonly Value[];
}

export class Call {
  readonly inputs: readonly Value[];
  readonly attributes: Attributes;
  readonly opset: number;
  readonly results: number;
  readonly run: CallContext["run"];

  constructor(inputs: readonly Value[], attributes: Attributes, { opset, results, run }: CallContext) {
    this.inputs = inputs;
    this.attributes = attributes;
    this.opset = opset;
    this.results = results;
    this.run = run;
  }

  /** Returns a required tensor. @throws {NodeProblem} */
  tensor(at: number): Tensor {
    const value = this.optional(at);
    if (value === undefined) throw new NodeProblem(`input ${at} is missing`);
    return value;
  }

  /** Returns a tensor that the node may leave out. @throws {NodeProblem} for a sequence */
  optional(at: number): Tensor | undefined {
    const value = this.inputs[at];
    if (value !== undefined && !(value instanceof Tensor))
      throw new NodeProblem(`input ${at}: expected a tensor of numbers, got ${kindOf(value)}`);
    return value;
  }

  /** Returns a required tensor of strings. @throws {NodeProblem} */
  strings(at: number): OnnxStrings {
    const value = this.inputs[at];
    if (typeof value !== "object" || !("strings" in value))
      throw new NodeProblem(`input ${at}: expected strings, got ${kindOf(value)}`);
    return value;
  }

  /** Returns a required sequence. @throws {NodeProblem} */
  sequence(at: number): readonly Value[] {
    const value = this.inputs[at];
    if (!Array.isArray(value)) throw new NodeProblem(`input ${at}: expected a sequence`);
    return value;
  }

  /** Returns the elements of a required tensor, such as a shape. */
  numbers(at: number): readonly number[] {
    return numbersOf(this.tensor(at));
  }

  /** Returns the elements of an optional tensor, or of the attribute that replaces it in earlier versions. */
  numbersOr(at: number, attribute: string): readonly number[] | undefined {
    const value = this.optional(at);
    return value === undefined ? this.attributes.numbers(attribute) : numbersOf(value);
  }

  /** Returns the element of an optional tensor. */
  number(at: number): number | undefined {
    const value = this.optional(at);
    if (value === undefined) return undefined;
    const [element] = numbersOf(value);
    if (element === undefined) throw new NodeProblem(`input ${at}: expected an element, got an empty tensor`);
    return element;
  }
}

const kindOf = (value: Value): string => {
  if (value === undefined) return "nothing";
  if (value instanceof Tensor) return value.describe();
  if (Array.isArray(value)) return "a sequence";
  return value instanceof Map ? "a map" : "strings";
};

/** Computes a node's results: one value, or a list with one for each result. */
export type Operator = (call: Call) => Value | Results;

/** Wraps several results. A plain list would be a sequence. */
export class Results {
  readonly values: readonly Value[];

  constructor(...values: readonly Value[]) {
    this.values = values;
  }
}

/** Operators by name. */
export type Operators = Readonly<Record<string, Operator>>;

/** Elements of tensors up to this size are cached: sizes, axes and limits. */
const MOST_KEPT = 64;
/**
 * Caches the elements of small tensors, with the versions of their storages, because each run of a graph reads the same
 * constants.
 */
const kept = new WeakMap<Tensor, { readonly version: number; readonly numbers: readonly number[] }>();

/**
 * Returns elements as numbers. Integers beyond 2^53 lose their last bits, which does not change limits such as "to the
 * end".
 */
export function numbersOf(x: Tensor): readonly number[] {
  const { version } = x.storage;
  const known = kept.get(x);
  if (known?.version === version) return known.numbers;
  const numbers = Array.from(x.dataSync(), Number);
  if (x.size <= MOST_KEPT) kept.set(x, { version, numbers });
  return numbers;
}
