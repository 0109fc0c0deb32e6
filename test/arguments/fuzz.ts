/**
 * The fuzz test of arguments: calls of every function with a hostile value for each argument and option. Each call
 * returns, or throws an OrchardError that names the operation and, if the value is not of the parameter's kind, the
 * parameter.
 */
import { OrchardError } from "../../src/core/errors.ts";
import { type Parameter, type Signature, signatures } from "../../src/core/parameters.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { processorSeconds } from "../support/processor_time.ts";
import { isExhaustive } from "../support/repeats.ts";
import { CallersError, hostiles } from "./hostile.ts";

export type Call = (...values: readonly unknown[]) => unknown;

/** A function, a valid call of it, and its row in the table. */
export interface Subject {
  readonly name: string;
  readonly call: Call;
  readonly signature: Signature;
  readonly right: () => readonly unknown[];
}

/** Returns the row of a function, by its name or an alias. */
export function signatureOf(name: string, functions: Readonly<Record<string, unknown>>): Signature | undefined {
  const names = Object.keys(functions).filter((other) => functions[other] === functions[name]);
  return [name, ...names].map((own) => signatures.get(own)).find((found) => found !== undefined);
}

interface Trial {
  readonly values: readonly unknown[];
  /** The argument that was replaced, for messages. */
  readonly place: string;
  /** The parameter whose value is hostile. */
  readonly name?: string;
  readonly hostile: unknown;
}

type Named = readonly [name: string, parameter: Parameter<unknown>];

const isOptions = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** The positional values, and the options. */
function partsOf(values: readonly unknown[]): { positional: unknown[]; options: Record<string, unknown> } {
  const last = values.at(-1);
  return isOptions(last)
    ? { positional: values.slice(0, -1), options: last }
    : { positional: [...values], options: {} };
}

/** Returns the options without one key. */
const without = (options: Record<string, unknown>, name: string): Record<string, unknown> =>
  Object.fromEntries(Object.entries(options).filter(([own]) => own !== name));

/** Yields the calls of a function with one hostile value, in the places that are chosen by their numbers. */
function* trials(
  { signature, right }: Subject,
  make: () => unknown,
  isChosen: (place: number) => boolean,
): Generator<Trial> {
  const entries: readonly Named[] = Object.entries(signature.parameters);
  const places = entries.filter(([, { by }]) => by !== "name").map(([name]) => name);
  const count = Math.max(places.length, partsOf(right()).positional.length) + 1;
  for (let at = 0; at < count; at++) {
    if (!isChosen(at)) continue;
    const { positional, options } = partsOf(right());
    const hostile = make();
    const name = places[at];
    const rest = name === undefined ? options : without(options, name);
    const values = Array.from({ length: Math.max(positional.length, at + 1) }, (_, own) =>
      own === at ? hostile : positional[own],
    );
    const given = Object.keys(rest).length > 0 ? [...values, rest] : values;
    yield { values: given, place: `argument ${at + 1}`, hostile, ...(name !== undefined && { name }) };
  }
  for (const [index, [name]] of entries.filter(([, { by }]) => by !== "operand").entries()) {
    if (!isChosen(count + index)) continue;
    const { positional, options } = partsOf(right());
    const hostile = make();
    const at = places.indexOf(name);
    const values = at >= 0 && at < positional.length ? positional.with(at, undefined) : positional;
    yield { values: [...values, { ...options, [name]: hostile }], place: `{ ${name} }`, name, hostile };
  }
}

/** Describes what is wrong with the outcome of a call; undefined if nothing is. */
function problemOf({ call, signature }: Subject, { values, place, name, hostile }: Trial): string | undefined {
  const where = `${place}:`;
  let seconds = 0;
  try {
    seconds = processorSeconds(() => call(...values));
  } catch (error) {
    if (error instanceof CallersError) return undefined;
    if (!(error instanceof OrchardError)) return `${where} ${String(error)}`;
    if (error.message.length < signature.operation.length + 8) return `${where} an empty message`;
    if (signatures.has(error.code)) return `${where} an operation as the code: ${error.code}`;
    if (!error.message.startsWith("[") || error.operation === "") return `${where} no operation in ${error.message}`;
    if (Object.hasOwn(signature.parameters, error.operation) && error.operation !== signature.operation)
      return `${where} the operation is a parameter in ${error.message}`;
    const isNamed = name === undefined || isOfKind(signature, name, hostile) || namesPlace(signature, name, error);
    if (!isNamed) return `${where} the message does not name ${name}: ${error.message}`;
  }
  return seconds > 5 ? `${where} took ${seconds.toFixed(1)} s of processor time` : undefined;
}

/**
 * Whether a message names the parameter. A disposed tensor is described instead, and unreadable values have no name. If
 * a call accepts two orders (the axis before or after the indices, with `low` or without), another parameter may be
 * named.
 */
function namesPlace({ parameters }: Signature, name: string, { message }: OrchardError): boolean {
  if (message.includes(name) || /after dispose\(\)|reading the arguments threw/.test(message)) return true;
  const hasTwoOrders = ("dim" in parameters && "index" in parameters) || "low" in parameters;
  return hasTwoOrders && /index|source|shape/.test(message);
}

/** Functions that accept a second tensor in place of an axis. */
const takesOther = new Set(["max", "min"]);

/** Whether a parameter accepts a value, or rejects it with a more specific error. */
function isOfKind({ parameters, operation }: Signature, name: string, value: unknown): boolean {
  try {
    if (value === undefined || isOptions(value)) return true; // nothing, or the options themselves
    if (Tensor.isTensor(value) && (value.rank === 0 || takesOther.has(operation))) return true; // represents a number
    const { kind } = parameters[name];
    return kind.starts?.(value) === true || kind.parse(value, operation, name) !== undefined;
  } catch {
    return true;
  }
}

/**
 * Returns everything that is wrong with a function. A usual run tries each value in every second place. The places
 * between them get its neighbors in the list, which resemble it.
 */
export function problemsOf(subject: Subject, around: <R>(body: () => R) => R): string[] {
  const found: string[] = [];
  for (const [at, { name, make }] of hostiles.entries())
    around(() => {
      for (const trial of trials(subject, make, (place) => isExhaustive || (place + at) % 2 === 0)) {
        const problem = problemOf(subject, trial);
        if (problem !== undefined) found.push(`${subject.name} with ${name} as ${problem.slice(0, 300)}`);
      }
    });
  return found;
}
