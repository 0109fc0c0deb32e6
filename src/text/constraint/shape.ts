/** A shape is a set of conditions on values that contains no alternatives. A schema is a list of alternative shapes. */
import { recordIn } from "../../core/values.ts";
import type { Pattern } from "./pattern.ts";
import type { Term } from "./schema_terms.ts";

export type Type = "null" | "boolean" | "number" | "string" | "array" | "object";
export const TYPES: readonly Type[] = ["null", "boolean", "number", "string", "array", "object"];

/** Maximum number of shapes of one schema. */
export const MOST_SHAPES = 256;

/** A schema's conditions on the items of lists: the leading ones, and all others. */
export interface ListFacts {
  readonly prefix: readonly Term[];
  readonly rest: Term | undefined;
  /** Whether the conditions come from a negated schema, which `unevaluatedItems` ignores. */
  readonly isDenied?: boolean;
}

/** The number of items that must satisfy a term. */
export interface ContainsFacts {
  readonly term: Term;
  readonly denied: Term;
  readonly least: number;
  readonly most: number;
}

/** A schema's conditions on the properties of objects. */
export interface ObjectFacts {
  readonly properties: ReadonlyMap<string, Term>;
  readonly patterns: readonly (readonly [pattern: Pattern, term: Term])[];
  /** The term of all other properties. */
  readonly others: Term | undefined;
  /** Whether the conditions come from a negated schema, which `unevaluatedProperties` ignores. */
  readonly isDenied?: boolean;
}

/** Conditions, each of which applies only to values of one type. */
export interface Shape {
  readonly types: readonly Type[];
  /** The allowed values; undefined if they are not listed. */
  readonly values: readonly unknown[] | undefined;
  /** Scalars that are not allowed. */
  readonly excluded: readonly unknown[];
  readonly least: number;
  readonly most: number;
  readonly multiples: readonly number[];
  readonly nonMultiples: readonly number[];
  readonly patterns: readonly Pattern[];
  readonly leastLength: number;
  readonly mostLength: number;
  readonly lists: readonly ListFacts[];
  readonly contains: readonly ContainsFacts[];
  readonly leastItems: number;
  readonly mostItems: number;
  readonly isUnique: boolean;
  readonly objects: readonly ObjectFacts[];
  readonly required: readonly string[];
  readonly names: readonly Term[];
  readonly leastProperties: number;
  readonly mostProperties: number;
}

export const anything: Shape = {
  types: TYPES,
  values: undefined,
  excluded: [],
  least: -Infinity,
  most: Infinity,
  multiples: [],
  nonMultiples: [],
  patterns: [],
  leastLength: 0,
  mostLength: Infinity,
  lists: [],
  contains: [],
  leastItems: 0,
  mostItems: Infinity,
  isUnique: false,
  objects: [],
  required: [],
  names: [],
  leastProperties: 0,
  mostProperties: Infinity,
};

type Meet<T> = (a: T, b: T) => T;
const joined = (a: readonly unknown[], b: readonly unknown[]) => [...new Set([...a, ...b])] as never[];
const greater = Math.max;
const smaller = Math.min;

const meets: { readonly [name in keyof Shape]: Meet<Shape[name]> } = {
  types: (a, b) => a.filter((type) => b.includes(type)),
  values: (a, b) => (a && b ? a.filter((value) => b.some((other) => equal(value, other))) : (a ?? b)),
  excluded: joined,
  multiples: joined,
  nonMultiples: joined,
  patterns: joined,
  lists: joined,
  contains: joined,
  objects: joined,
  required: joined,
  names: joined,
  least: greater,
  leastLength: greater,
  leastItems: greater,
  leastProperties: greater,
  most: smaller,
  mostLength: smaller,
  mostItems: smaller,
  mostProperties: smaller,
  isUnique: (a, b) => a || b,
};

/** Some conditions of a shape. */
export type Facts = Partial<Shape>;

/** Returns the conjunction of a shape and further conditions. */
export function meet(shape: Shape, facts: Facts): Shape {
  const fields = Object.entries(facts).map(([name, value]) => {
    const of = meets[name as keyof Shape] as Meet<unknown>;
    return [name, of(shape[name as keyof Shape], value)];
  });
  return { ...shape, ...Object.fromEntries(fields) };
}

/** Whether two JSON values are equal, regardless of the order of properties. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [object, other] = [recordIn(a), recordIn(b)];
  const keys = Object.keys(object);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && equal(object[key], other[key]))
  );
}

export function typeOf(value: unknown): Type {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : (typeof value as Type);
}
