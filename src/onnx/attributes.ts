/** The attributes of a node, read by name and type. */
import { Tensor } from "../tensor/tensor.ts";
import { NodeProblem } from "./errors.ts";
import type { Graph } from "./graph.ts";
import type { OnnxStrings } from "./strings.ts";

/** An attribute as the operators use it: integers as numbers, bytes as text. */
export type AttributeValue =
  | number
  | string
  | Tensor
  | OnnxStrings
  | Graph
  | readonly number[]
  | readonly string[]
  | readonly Tensor[]
  | readonly Graph[]
  | undefined;

export class Attributes {
  readonly #values: ReadonlyMap<string, AttributeValue>;

  constructor(values: ReadonlyMap<string, AttributeValue>) {
    this.#values = values;
  }

  has(name: string): boolean {
    return this.#values.get(name) !== undefined;
  }

  /** Returns an integer or a float. @throws {NodeProblem} if it is missing without a default, or of another type */
  number(name: string, byDefault?: number): number {
    const value = this.#values.get(name) ?? byDefault;
    if (typeof value !== "number") throw this.#wrong(name, "a number", value);
    return value;
  }

  flag(name: string, byDefault = false): boolean {
    return this.number(name, byDefault ? 1 : 0) !== 0;
  }

  numbers(name: string): readonly number[] | undefined {
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    if (!isList(value, "number")) throw this.#wrong(name, "a list of numbers", value);
    return value as readonly number[];
  }

  text(name: string, byDefault?: string): string {
    const value = this.#values.get(name) ?? byDefault;
    if (typeof value !== "string") throw this.#wrong(name, "a string", value);
    return value;
  }

  /** Returns a string attribute that the standard restricts to `words`. @throws {NodeProblem} for other values */
  choice<Word extends string>(name: string, words: readonly [Word, Word, ...Word[]], byDefault?: Word): Word {
    const word = this.text(name, byDefault);
    const known = words.find((each) => each === word);
    if (known !== undefined) return known;
    const expected = `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
    throw new NodeProblem(`attribute ${name}: expected ${expected}, got ${word}`);
  }

  texts(name: string): readonly string[] | undefined {
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    if (!isList(value, "string")) throw this.#wrong(name, "a list of strings", value);
    return value as readonly string[];
  }

  tensor(name: string): Tensor | undefined {
    const value = this.#values.get(name);
    if (value !== undefined && !(value instanceof Tensor)) throw this.#wrong(name, "a tensor of numbers", value);
    return value;
  }

  /** Returns a tensor of numbers or strings; undefined without the attribute. */
  value(name: string): Tensor | OnnxStrings | undefined {
    const value = this.#values.get(name);
    const isStrings = typeof value === "object" && "strings" in value;
    if (value !== undefined && !(value instanceof Tensor) && !isStrings) throw this.#wrong(name, "a tensor", value);
    return value;
  }

  graph(name: string): Graph {
    const value = this.#values.get(name);
    if (value === undefined) throw this.#wrong(name, "a graph", value);
    return value as Graph;
  }

  entries(): IterableIterator<[string, AttributeValue]> {
    return this.#values.entries();
  }

  /** Returns all graphs, regardless of their names. */
  graphs(): readonly Graph[] {
    return [...this.#values.values()].flatMap((value) => (isGraph(value) ? [value] : []));
  }

  #wrong(name: string, expected: string, got: AttributeValue): NodeProblem {
    return new NodeProblem(`attribute ${name}: expected ${expected}, got ${got === undefined ? "none" : typeof got}`);
  }
}

const isList = (value: AttributeValue, type: string): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === type);

/** Only graphs have `steps`; the other values do not. */
const isGraph = (value: AttributeValue): value is Graph =>
  typeof value === "object" && value !== null && "steps" in value;
