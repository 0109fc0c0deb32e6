/**
 * Declarations of the parameters of public functions. Each declaration provides the argument check, its errors, and an
 * entry in a table of all functions for tests.
 *
 * A call passes the operands, then the options. Options that PyTorch accepts by position can be passed by position in
 * PyTorch's order; all options can be passed by name in one object as the last argument. Every argument is used or
 * rejected.
 *
 * @example
 * const sumParameters = parameters("sum", {
 *   x: operand(aTensor),
 *   dim: optional(axes),
 *   keepdim: optional(flag, false),
 *   dtype: named(aDType),
 * });
 * function sum(...values: unknown[]) {
 *   const { x, dim, keepdim, dtype } = sumParameters(values); // sum(x, 1, true), sum(x, 1, { keepdim: true })
 */
import { describeValue } from "./describe.ts";
import { ArgumentError, OrchardError } from "./errors.ts";
import { counted } from "./plural.ts";
import { nearestName } from "./suggestion.ts";

type ErrorClass = new (operation: string, code: string, message: string) => OrchardError;

/** The type and conditions of a parameter's value. */
export interface Kind<T> {
  /** Description for errors, such as `"a number above 0"`. */
  readonly expected: string;
  /**
   * Returns the value in the form that the operation uses, copied if the caller could change it later; undefined if it
   * is not of this kind. May throw a more specific error.
   */
  readonly parse: (value: unknown, operation: string, name: string) => T | undefined;
  /** The class and code of the error. Default: ArgumentError with `invalidOption` or `invalidOperand`. */
  readonly error?: readonly [ErrorClass, code: string];
  /** Whether a value starts a list that is passed element by element, as in `zeros(2, 3)`. */
  readonly starts?: (value: unknown) => boolean;
}

/** A parameter of a function. */
export interface Parameter<T> {
  readonly kind: Kind<T>;
  /** `operand`: by position only; `position`: by position or by name; `name`: by name only. */
  readonly by: "operand" | "position" | "name";
  readonly isRequired: boolean;
  /** The value if none is given. */
  readonly fallback: T | undefined;
}

/** Declares a parameter that is passed only by position, usually a tensor. */
export const operand = <T>(kind: Kind<T>): Parameter<T> => ({
  kind,
  by: "operand",
  isRequired: true,
  fallback: undefined,
});

/** As {@link operand}, but optional. */
export function optionalOperand<T>(kind: Kind<T>): Parameter<T | undefined> {
  return { kind, by: "operand", isRequired: false, fallback: undefined };
}

/** Declares a required parameter that is passed by position or by name. */
export const required = <T>(kind: Kind<T>): Parameter<T> => ({
  kind,
  by: "position",
  isRequired: true,
  fallback: undefined,
});

/** Declares an optional parameter that is passed by position or by name. */
export function optional<T>(kind: Kind<T>, fallback: NoInfer<T>): Parameter<T>;
export function optional<T>(kind: Kind<T>): Parameter<T | undefined>;
export function optional<T>(kind: Kind<T>, fallback?: T): Parameter<T | undefined> {
  return { kind, by: "position", isRequired: false, fallback };
}

/**
 * Declares an optional parameter that is passed only by name: a keyword-only parameter of PyTorch, or one that PyTorch
 * lacks.
 */
export function named<T>(kind: Kind<T>, fallback: NoInfer<T>): Parameter<T>;
export function named<T>(kind: Kind<T>): Parameter<T | undefined>;
export function named<T>(kind: Kind<T>, fallback?: T): Parameter<T | undefined> {
  return { kind, by: "name", isRequired: false, fallback };
}

/** A function's parameters by name. Those that can be passed by position come first, in their order. */
export type Parameters = Readonly<Record<string, Parameter<unknown>>>;

/** The checked arguments of a call, with defaults for the rest. */
export type Parsed<P extends Parameters> = {
  readonly [Name in keyof P]: P[Name] extends Parameter<infer T> ? T : never;
};

/**
 * The ways to pass the options `O`: all by name, or some by position in this order and the others by name.
 *
 * @example
 * type Rest = Given<{ dim?: number; keepdim?: boolean }, ["dim", "keepdim"]>; // sum(x, 1, true)
 */
export type Given<O, Order extends readonly (keyof O)[]> = Order extends readonly [
  infer First extends keyof O,
  ...infer Others extends readonly (keyof O)[],
]
  ? [options?: O] | [value: O[First], ...others: GivenAfter<O, First, Others>]
  : [options?: O];
type GivenAfter<O, First extends keyof O, Others extends readonly (keyof O)[]> = Others extends readonly (keyof Omit<
  O,
  First
>)[]
  ? Given<Omit<O, First>, Others>
  : never;

/**
 * As {@link Given}, with one required option, which is passed by position before the others or by name.
 *
 * @example
 * type Rest = Needed<{ stepSize: number; gamma?: number }, "stepSize", ["gamma"]>; // step(7, 0.3)
 */
export type Needed<O, First extends keyof O, Others extends readonly Exclude<keyof O, First>[] = []> =
  | [options: O]
  | [value: O[First], ...others: Given<Omit<O, First>, Others>];

/** Rejects arguments to a function without parameters. */
export function expectNothing(operation: string, values: readonly unknown[]): void {
  if (values.some((value) => value !== undefined)) unlisted(operation, {})(values);
}

/** Returns the error for calling a constructor that is internal to the package. */
export const madeBy = (operation: string, maker: string): ArgumentError =>
  new ArgumentError(operation, "invalidOperand", `it can't be constructed directly; use ${maker}`);

/** A value, or a function that makes it on first use. Packing writes functions, so that imports make less. */
export type Later<T extends object> = T | (() => T);

/** Returns a value that may be made on first use. */
export const resolved = <T extends object>(given: Later<T>): T => (typeof given === "function" ? given() : given);

/** Checks the arguments of a call. */
export type Reader<P extends Parameters> = (values: readonly unknown[]) => Parsed<P>;

/** A function's entry in the table. */
export interface Signature {
  readonly operation: string;
  readonly parameters: Parameters;
  /** Such as `sum(x, dim?, keepdim?, { dtype? })`. */
  readonly text: string;
}

const table = new Map<string, Signature>();

/** All public functions and constructors with their parameters, by their names in errors. */
export const signatures: ReadonlyMap<string, Signature> = table;

/**
 * Returns the declared parameters of a public function with operands. In the package, the first call declares them
 * (scripts/release/later.ts), so this makes one without arguments, which throws.
 */
export function parametersOf(operation: string, compute: () => unknown): Parameters {
  try {
    if (!table.has(operation)) compute();
  } catch {}
  return table.get(operation)!.parameters;
}

/** A signature prepared for parsing. */
interface Plan {
  readonly operation: string;
  /** See {@link Signature}. */
  readonly text: string;
  readonly positional: readonly (readonly [name: string, Parameter<unknown>])[];
  readonly required: readonly string[];
  readonly operands: number;
  /** Parameters that can be passed by name, with their position; −1 if they have none. */
  readonly options: ReadonlyMap<string, { readonly kind: Kind<unknown>; readonly at: number }>;
  readonly defaults: Readonly<Record<string, unknown>>;
}

/**
 * Declares the parameters of a function, and returns a reader that checks the arguments of a call.
 *
 * @throws {ArgumentError} (the returned function) `unknownOption`, `tooManyArguments`, `givenTwice`, `missingArgument`;
 * and the error of a kind, by default `invalidOperand` or `invalidOption`.
 */
export function parameters<P extends Parameters>(operation: string, declared: Later<P>): Reader<P> {
  if (table.has(operation)) throw new TypeError(`the parameters of ${operation} are declared twice`);
  table.set(operation, new Declared(operation, declared));
  return readerOf(operation, declared);
}

/** This is a class because an object with a getter would create a closure at import for each of 800 functions. */
class Declared implements Signature {
  constructor(
    readonly operation: string,
    private readonly declared: Later<Parameters>,
  ) {}

  get parameters(): Parameters {
    return resolved(this.declared);
  }

  get text(): string {
    return textOf(this.operation, Object.entries(this.parameters));
  }
}

/** As {@link parameters}, for an internal function that is not in the table. */
export const unlisted = <P extends Parameters>(operation: string, declared: Later<P>): Reader<P> =>
  readerOf(operation, declared);

/** Changes the checked arguments of an operation. */
type Rewrite = (operation: string, parsed: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>;

let rewrite: Rewrite | undefined;

/** @internal Sets the function that rewrites the checked arguments of all later calls, as for `autocast`. */
export function rewriteArguments(by: Rewrite): void {
  rewrite = by;
}

/** Creates the plan on the first call, since a program calls few of the functions that it imports. */
function readerOf<P extends Parameters>(operation: string, declared: Later<P>): Reader<P> {
  let plan: Plan | undefined;
  return (values) => {
    try {
      plan ??= planOf(operation, resolved(declared));
      const parsed = parse(plan, values);
      return (rewrite === undefined ? parsed : rewrite(operation, parsed)) as Parsed<P>;
    } catch (cause) {
      throw cause instanceof OrchardError ? cause : unreadable(operation, cause);
    }
  };
}

function planOf(operation: string, declared: Parameters): Plan {
  const entries = Object.entries(declared);
  const positional = entries.filter(([, { by }]) => by !== "name");
  const options = entries.filter(([, { by }]) => by !== "operand");
  return {
    operation,
    get text() {
      return textOf(operation, entries);
    },
    positional,
    required: entries.filter(([, { isRequired }]) => isRequired).map(([name]) => name),
    operands: entries.filter(([, { by }]) => by === "operand").length,
    options: new Map(
      options.map(([name, { kind }]) => [
        name,
        { kind, at: positional.findIndex(([positionalName]) => positionalName === name) },
      ]),
    ),
    defaults: Object.fromEntries(entries.map(([name, { fallback }]) => [name, fallback])),
  };
}

function textOf(operation: string, entries: readonly (readonly [string, Parameter<unknown>])[]): string {
  const namesOf = (given: readonly (readonly [string, Parameter<unknown>])[]) =>
    given.map(([name, { isRequired }]) => (isRequired ? name : `${name}?`));
  const byName = namesOf(entries.filter(([, { by }]) => by === "name"));
  const options = byName.length > 0 ? [`{ ${byName.join(", ")} }`] : [];
  return `${operation}(${[...namesOf(entries.filter(([, { by }]) => by !== "name")), ...options].join(", ")})`;
}

function parse(plan: Plan, values: readonly unknown[]): Record<string, unknown> {
  const { positional, operation, operands } = plan;
  const result = { ...plan.defaults };
  let count = values.length;
  // a caller may forward optional arguments that it was not given
  while (count > 0 && values[count - 1] === undefined) count--;
  const options = count > operands ? optionsOf(values[count - 1]) : undefined;
  if (options !== undefined) count--;
  let given = count;
  for (let at = 0; at < count; at++) {
    const entry = positional[at];
    if (entry === undefined) throw tooMany(plan, values, at);
    const [name, { kind, by }] = entry;
    let value = values[at];
    if (kind.starts?.(value)) {
      value = values.slice(at, count);
      count = at;
      given = at + 1;
    }
    if (value !== undefined) result[name] = parsed(operation, name, kind, value, by === "operand");
  }
  if (options !== undefined) readOptions(plan, options, values.slice(0, given), result);
  for (const name of plan.required) if (result[name] === undefined) throw missing(plan, name);
  return result;
}

/** Returns the last argument if it is a plain object, which holds options. */
function optionsOf(value: unknown): Options | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null ? (value as Options) : undefined;
}

type Options = Readonly<Record<string, unknown>>;

function readOptions(plan: Plan, options: Options, values: readonly unknown[], result: Record<string, unknown>): void {
  for (const name of Object.keys(options)) {
    const option = plan.options.get(name);
    if (option === undefined) throw unknownOption(plan.operation, name, [...plan.options.keys()]);
    const value = options[name];
    if (value === undefined) continue;
    const byPosition = option.at < 0 ? undefined : values[option.at];
    if (byPosition !== undefined) throw givenTwice(plan, name);
    result[name] = parsed(plan.operation, name, option.kind, value, false);
  }
}

/** An object with named parts: `window: { left: 3 }`. Errors call a part `window.left`. */
export function structure<P extends Parameters>(parts: P): Kind<Parsed<P>> {
  const names = Object.keys(parts);
  return {
    expected: `an object with ${names.join(", ")}`,
    parse(value, operation, name) {
      const given = optionsOf(value);
      if (given === undefined) return undefined;
      const result: Record<string, unknown> = {};
      for (const field of Object.keys(given))
        if (!names.includes(field)) throw unknownOption(operation, field, names, name);
      for (const [field, { kind, fallback, isRequired }] of Object.entries(parts)) {
        const part = given[field];
        if (part === undefined && isRequired)
          throw new ArgumentError(operation, "missingArgument", `missing ${name}.${field}`);
        result[field] = part === undefined ? fallback : parsed(operation, `${name}.${field}`, kind, part, false);
      }
      return result as Parsed<P>;
    },
  };
}

function parsed(operation: string, name: string, kind: Kind<unknown>, value: unknown, isOperand: boolean): unknown {
  let result = kind.parse(value, operation, name);
  if (result === undefined) result = ofElement(operation, name, kind, value);
  if (result !== undefined) return result;
  const [Class, code] = kind.error ?? [ArgumentError, isOperand ? "invalidOperand" : "invalidOption"];
  throw new Class(operation, code, `expected ${name} to be ${kind.expected}, got ${describeValue(value)}`);
}

/** The part of a rank-0 tensor that this module uses. */
interface Scalarlike {
  readonly rank: 0;
  readonly requiresGrad: boolean;
  readonly item: () => unknown;
  readonly describe: () => string;
}

const isScalarlike = (value: unknown): value is Scalarlike =>
  typeof value === "object" && value !== null && "rank" in value && value.rank === 0 && "item" in value;

/**
 * Reads the element of a tensor of rank 0, which may be passed for a number as in PyTorch. This waits for its value.
 * Gradients do not pass through it, so a tensor that requires a gradient is rejected.
 */
function ofElement(operation: string, name: string, kind: Kind<unknown>, value: unknown): unknown {
  if (!isScalarlike(value)) return undefined;
  const element = value.item();
  const result = kind.parse(element, operation, name) ?? kind.parse(plainNumber(element), operation, name);
  if (result === undefined || !value.requiresGrad) return result;
  throw new ArgumentError(
    operation,
    "noGradientFor",
    `expected ${name} to be a number, or a tensor that requires no gradient, got ${value.describe()}; detach it`,
  );
}

/** Converts a bigint to a number if that is exact. */
const plainNumber = (value: unknown): unknown =>
  typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : value;

/** Returns the error for an unknown option, with the most similar known one. */
export function unknownOption(operation: string, name: string, names: readonly string[], of?: string): ArgumentError {
  const nearest = nearestName(name, names);
  const meant = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
  const known = names.length === 0 ? "; there are none" : `; the options are ${names.join(", ")}`;
  return new ArgumentError(
    operation,
    "unknownOption",
    `there is no option ${describeValue(name)}${of ? ` of ${of}` : ""}${known}${meant}`,
  );
}

function givenTwice({ operation, text }: Plan, name: string): ArgumentError {
  return new ArgumentError(operation, "givenTwice", `${name} is given twice, by position and by name. Usage: ${text}`);
}

function missing({ operation, text }: Plan, name: string): ArgumentError {
  return new ArgumentError(operation, "missingArgument", `missing argument ${name}. Usage: ${text}`);
}

function tooMany({ operation, text, positional }: Plan, values: readonly unknown[], at: number): ArgumentError {
  const isNaming = text.includes("{");
  const count = positional.length;
  const most = count === 0 ? "no arguments" : `at most ${counted(count, "argument")}`;
  const extra = `got ${values.length}, with ${describeValue(values[at])} as argument ${at + 1}`;
  const expected = `${most}${isNaming ? " by position" : ""}`;
  const usage = isNaming ? `Pass options by name: ${text}` : `Usage: ${text}`;
  return new ArgumentError(operation, "tooManyArguments", `expected ${expected}, ${extra}. ${usage}`);
}

/**
 * Reads arguments that may run the caller's code, such as getters and proxies.
 *
 * @throws {ArgumentError} `unreadable` if that code throws. Orchard's errors pass through unchanged.
 */
export function reading<Result>(operation: string, read: () => Result): Result {
  try {
    return read();
  } catch (cause) {
    throw cause instanceof OrchardError ? cause : unreadable(operation, cause);
  }
}

/** Returns the error for arguments that can't be read: a getter threw, or a proxy was revoked. */
const unreadable = (operation: string, cause: unknown): ArgumentError =>
  new ArgumentError(operation, "unreadable", "reading the arguments threw an error (see cause)", {
    cause,
  });
