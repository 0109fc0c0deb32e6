/** Kinds of parameters other than tensors: flags, choices, numbers, texts, functions. */
import { ArgumentError } from "./errors.ts";
import type { NumberRule } from "./options.ts";
import type { Kind } from "./parameters.ts";

/** Joins items, such as "a, b or c". */
const listedText = (items: readonly string[]): string =>
  [items.slice(0, -1).join(", "), ...items.slice(-1)].filter(Boolean).join(" or ");

/** True or false. */
export const flag: Kind<boolean> = {
  expected: "true or false",
  parse: (value) => (typeof value === "boolean" ? value : undefined),
};

/** One of several strings. */
export const choice = <const C extends string>(...choices: readonly C[]): Kind<C> => ({
  get expected() {
    return listedText(choices.map((choice) => `"${choice}"`)); // used only by errors
  },
  parse: (value) => choices.find((choice) => choice === value),
  error: [ArgumentError, "unknownChoice"],
});

/** A number that satisfies a rule. */
export const aNumber = ({ holds, expected }: NumberRule): Kind<number> => ({
  expected,
  parse: (value) => (typeof value === "number" && holds(value) ? value : undefined),
});

/** Any number; the operation checks it further. */
export const someNumber: Kind<number> = aNumber({ holds: () => true, expected: "a number" });

/** A bigint. */
export const aBigint: Kind<bigint> = {
  expected: "a bigint",
  parse: (value) => (typeof value === "bigint" ? value : undefined),
};

/** Any string. */
export const text: Kind<string> = {
  expected: "a string",
  parse: (value) => (typeof value === "string" ? value : undefined),
};

/** The path of a file or folder. */
export const aPath: Kind<string> = {
  expected: "a path: a non-empty string without NUL",
  parse: (value) => (typeof value === "string" && value !== "" && !value.includes("\0") ? value : undefined),
};

/** An object with properties that the operation reads: anything except functions, arrays and null. */
export const anObject = <T extends object>(expected: string): Kind<T> => ({
  expected,
  parse: (value) =>
    typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value)
      ? (value as T)
      : undefined,
});

/** A function to call. */
export const aFunction = <F extends (...values: never) => unknown>(): Kind<F> => ({
  expected: "a function",
  parse: (value) => (typeof value === "function" && !isClass(value) ? (value as F) : undefined),
});

const isClass = (value: object): boolean => /^class\b/.test(Function.prototype.toString.call(value));

/** An instance of a class. */
export const instanceOf = <T>(Class: abstract new (...values: never) => T, expected: string): Kind<T> => ({
  expected,
  parse: (value) => (value instanceof Class ? value : undefined),
});

/** Any of several kinds: the first one that accepts the value. */
export const either = <K extends readonly Kind<unknown>[]>(
  ...kinds: K
): Kind<K[number] extends Kind<infer T> ? T : never> => ({
  get expected() {
    return listedText(kinds.map((kind) => kind.expected));
  },
  parse(value, operation, name) {
    for (const kind of kinds) {
      const parsed = kind.parse(value, operation, name);
      if (parsed !== undefined) return parsed as never;
    }
    return undefined;
  },
  ...(kinds[0]?.error && { error: kinds[0].error }),
});

/** The value null. */
export const nothing: Kind<null> = { expected: "null", parse: (value) => (value === null ? null : undefined) };

/** A list of values of one kind, copied. Typed arrays are accepted too. */
export const listOf = <T>(kind: Kind<T>, expected: string): Kind<T[]> => ({
  expected,
  parse(value, operation, name) {
    if (!isListed(value)) return undefined;
    const result: T[] = [];
    for (let at = 0; at < value.length; at++) {
      const parsed = kind.parse(value[at], operation, name); // stops at a hole: a sparse array may be huge
      if (parsed === undefined) return undefined;
      result.push(parsed);
    }
    return result;
  },
});

/** Whether a value is an array; false for a revoked proxy. */
export function isArray(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/** Whether a value is an array or a typed array. */
export const isListed = (value: unknown): value is ArrayLike<unknown> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));

/** Copies an array or typed array, with undefined for holes. Undefined for other values and more than 2²⁴ elements. */
export const listed = (value: unknown): unknown[] | undefined =>
  isListed(value) && value.length <= MOST_LISTED ? Array.from(value) : undefined;
const MOST_LISTED = 2 ** 24;

/** An axis; negative ones count from the back. The operation checks whether the tensor has it. */
export const axis: Kind<number> = { expected: "an axis (a number, negative from the back)", parse: someNumber.parse };

/** The ways to pass options with an axis: all by name, or the axis by position. */
export type AxisArguments<O extends { dim?: unknown }> = [options?: O] | [dim: O["dim"], options?: Omit<O, "dim">];

/** As {@link AxisArguments}, with a required axis. */
export type Along<O extends { dim: unknown }> = [options: O] | [dim: O["dim"], options?: Omit<O, "dim">];

const axisList = listOf(axis, "a list of axes");

/** An axis or a list of axes. */
export const axes: Kind<number | number[]> = {
  expected: "an axis (a number, negative from the back) or a list of axes",
  parse: (value, operation, name) => someNumber.parse(value, operation, name) ?? axisList.parse(value, operation, name),
};

/** Axes that may also be given one by one: `flip(x, 0, 1)`. */
export const axesInline: Kind<number | number[]> = { ...axes, starts: (value) => typeof value === "number" };

/** The bytes of a file. */
export const someBytes: Kind<Uint8Array> = {
  expected: "bytes (a Uint8Array)",
  parse: (value) => (value instanceof Uint8Array ? value : undefined),
};
