/**
 * The parameters of public functions: one declaration of each, from which come the check of what a caller passes, its
 * errors, and a table of all functions that tests read.
 *
 * A function is called with its operands, then with options: those that PyTorch takes by position in its order, or all
 * of them by name in one object that comes last. What is passed is used, or refused.
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

/** What the value of a parameter has to be. */
export interface Kind<T> {
  /** Such as `"a number above 0"`, for errors. */
  readonly expected: string;
  /**
   * The value as the operation uses it, a copy where the caller could change it later; undefined where it is not of
   * this kind. May throw an error of its own that says more.
   */
  readonly parse: (value: unknown, operation: string, name: string) => T | undefined;
  /** The class and the code of its error. Default: ArgumentError, `invalidOption` or `invalidOperand`. */
  readonly error?: readonly [ErrorClass, code: string];
  /** Whether a value starts a list that is given element by element, as in `zeros(2, 3)`. */
  readonly starts?: (value: unknown) => boolean;
}

/** A kind in its place among a function's parameters. */
export interface Parameter<T> {
  readonly kind: Kind<T>;
  /** `operand`: by position only; `position`: by position or by name; `name`: by name only. */
  readonly by: "operand" | "position" | "name";
  readonly isRequired: boolean;
  /** What it is where nothing is given. */
  readonly fallback: T | undefined;
}

/** A parameter that is given by position and has no name for the caller: a tensor, mostly. */
export const operand = <T>(kind: Kind<T>): Parameter<T> => ({
  kind,
  by: "operand",
  isRequired: true,
  fallback: undefined,
});

/** As {@link operand}, but that it may be left out. */
export function optionalOperand<T>(kind: Kind<T>): Parameter<T | undefined> {
  return { kind, by: "operand", isRequired: false, fallback: undefined };
}

/** A parameter that has to be given, by position or by name. */
export const required = <T>(kind: Kind<T>): Parameter<T> => ({
  kind,
  by: "position",
  isRequired: true,
  fallback: undefined,
});

/** A parameter that may be given by position or by name. */
export function optional<T>(kind: Kind<T>, fallback: NoInfer<T>): Parameter<T>;
export function optional<T>(kind: Kind<T>): Parameter<T | undefined>;
export function optional<T>(kind: Kind<T>, fallback?: T): Parameter<T | undefined> {
  return { kind, by: "position", isRequired: false, fallback };
}

/** A parameter that may be given by name: what stands after the `*` in PyTorch, and what PyTorch does not have. */
export function named<T>(kind: Kind<T>, fallback: NoInfer<T>): Parameter<T>;
export function named<T>(kind: Kind<T>): Parameter<T | undefined>;
export function named<T>(kind: Kind<T>, fallback?: T): Parameter<T | undefined> {
  return { kind, by: "name", isRequired: false, fallback };
}

/** A function's parameters by name: those that are given by position first, in their order. */
export type Parameters = Readonly<Record<string, Parameter<unknown>>>;

/** What a caller gave, checked, with defaults for the rest. */
export type Parsed<P extends Parameters> = {
  readonly [Name in keyof P]: P[Name] extends Parameter<infer T> ? T : never;
};

/**
 * How the options `O` may be given: all by name, or some by position in this order and the others by name.
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
 * As {@link Given}, where an option is required: it is given by position, before the others, or by name.
 *
 * @example
 * type Rest = Needed<{ stepSize: number; gamma?: number }, "stepSize", ["gamma"]>; // step(7, 0.3)
 */
export type Needed<O, First extends keyof O, Others extends readonly Exclude<keyof O, First>[] = []> =
  | [options: O]
  | [value: O[First], ...others: Given<Omit<O, First>, Others>];

/** Refuses what a function that has no parameters was given. */
export function expectNothing(operation: string, values: readonly unknown[]): void {
  if (values.some((value) => value !== undefined)) unlisted(operation, {})(values);
}

/** The error of a constructor that only functions of the package call. */
export const madeBy = (operation: string, maker: string): ArgumentError =>
  new ArgumentError(operation, "invalidOperand", `expected to be made by ${maker}, got other arguments`);

/** Reads the values of a call. */
export type Reader<P extends Parameters> = (values: readonly unknown[]) => Parsed<P>;

/** A function in the table: how it is called. */
export interface Signature {
  readonly operation: string;
  readonly parameters: Parameters;
  /** Such as `sum(x, dim?, keepdim?, { dtype? })`. */
  readonly text: string;
}

const table = new Map<string, Signature>();

/** Every public function and constructor with its parameters, by the name that errors call it. */
export const signatures: ReadonlyMap<string, Signature> = table;

/** What parsing needs of a signature, at hand. */
interface Plan {
  readonly operation: string;
  /** See {@link Signature}. */
  readonly text: string;
  readonly positional: readonly (readonly [name: string, Parameter<unknown>])[];
  readonly required: readonly string[];
  readonly operands: number;
  /** What may be given by name, with its position; −1 where it has none. */
  readonly options: ReadonlyMap<string, { readonly kind: Kind<unknown>; readonly at: number }>;
  readonly defaults: Readonly<Record<string, unknown>>;
}

/**
 * Declares the parameters of a function, and returns what reads the values of a call.
 *
 * @throws {ArgumentError} (the function that is returned) `unknownOption`, `tooManyArguments`, `givenTwice`,
 * `missingArgument`; and what a kind says, by default `invalidOperand` or `invalidOption`.
 */
export function parameters<P extends Parameters>(operation: string, declared: P): Reader<P> {
  if (table.has(operation)) throw new TypeError(`the parameters of ${operation} are declared twice`);
  table.set(operation, {
    operation,
    parameters: declared,
    get text() {
      return textOf(operation, Object.entries(declared));
    },
  });
  return readerOf(operation, declared);
}

/** As {@link parameters}, of a function that is not in the table: another one calls it. */
export const unlisted = <P extends Parameters>(operation: string, declared: P): Reader<P> =>
  readerOf(operation, declared);

/** The plan is made on the first call: a program calls few of the functions that it imports. */
function readerOf<P extends Parameters>(operation: string, declared: P): Reader<P> {
  let plan: Plan | undefined;
  return (values) => {
    try {
      plan ??= planOf(operation, declared);
      return parse(plan, values) as Parsed<P>;
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
      options.map(([name, { kind }]) => [name, { kind, at: positional.findIndex(([own]) => own === name) }]),
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
  while (count > 0 && values[count - 1] === undefined) count--; // arguments that were passed on as they came
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

/** The last argument where it is an object of options: one without a class. */
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

/** An object with parts of its own, all by name: `window: { left: 3 }`. Errors call them `window.left`. */
export function structure<P extends Parameters>(parts: P): Kind<Parsed<P>> {
  const names = Object.keys(parts);
  return {
    expected: `an object with ${names.join(", ")}`,
    parse(value, operation, name) {
      const given = optionsOf(value);
      if (given === undefined) return undefined;
      const result: Record<string, unknown> = {};
      for (const own of Object.keys(given)) if (!names.includes(own)) throw unknownOption(operation, own, names, name);
      for (const [own, { kind, fallback, isRequired }] of Object.entries(parts)) {
        const part = given[own];
        if (part === undefined && isRequired)
          throw new ArgumentError(operation, "missingArgument", `expected ${name}.${own}, got nothing for it`);
        result[own] = part === undefined ? fallback : parsed(operation, `${name}.${own}`, kind, part, false);
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

/** A tensor without axes, of which this module knows no more. */
interface Scalarlike {
  readonly rank: 0;
  readonly requiresGrad: boolean;
  readonly item: () => unknown;
  readonly describe: () => string;
}

const isScalarlike = (value: unknown): value is Scalarlike =>
  typeof value === "object" && value !== null && "rank" in value && value.rank === 0 && "item" in value;

/**
 * As in PyTorch, a tensor without axes stands for a number: its element counts, which is waited for. No gradient goes
 * through it, so a tensor that requires one is refused.
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

/** A bigint as a number, where that has its value. */
const plainNumber = (value: unknown): unknown =>
  typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : value;

/** The error of an option that a function does not have, with the one that was probably meant. */
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
  return new ArgumentError(operation, "givenTwice", `${name} is given by position and by name. Usage: ${text}`);
}

function missing({ operation, text }: Plan, name: string): ArgumentError {
  return new ArgumentError(operation, "missingArgument", `expected ${name}, got nothing for it. Usage: ${text}`);
}

function tooMany({ operation, text, positional }: Plan, values: readonly unknown[], at: number): ArgumentError {
  const isNaming = text.includes("{");
  const most = `${counted(positional.length, "argument")}${isNaming && positional.length > 0 ? " by position" : ""}`;
  const extra = `got ${values.length}, with ${describeValue(values[at])} as argument ${at + 1}`;
  const usage = isNaming ? `Pass options by name: ${text}` : `Usage: ${text}`;
  return new ArgumentError(operation, "tooManyArguments", `expected at most ${most}, ${extra}. ${usage}`);
}

/**
 * Reads what a caller passed, of which the caller's own code may be a part: a getter, a proxy.
 *
 * @throws {ArgumentError} `unreadable` where that code throws; errors of ours as they are.
 */
export function reading<Result>(operation: string, read: () => Result): Result {
  try {
    return read();
  } catch (cause) {
    throw cause instanceof OrchardError ? cause : unreadable(operation, cause);
  }
}

/** Reading what was passed failed: a getter threw, a proxy was revoked. */
const unreadable = (operation: string, cause: unknown): ArgumentError =>
  new ArgumentError(operation, "unreadable", "reading the arguments threw an error (see cause)", {
    cause,
  });
