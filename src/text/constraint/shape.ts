/** What values have to be like, without alternatives: what one way through a schema's alternatives says of them. */
import type { Pattern } from "./pattern.ts";
import type { Term } from "./schema_terms.ts";

export type Type = "null" | "boolean" | "number" | "string" | "array" | "object";
export const TYPES: readonly Type[] = ["null", "boolean", "number", "string", "array", "object"];

/** What one schema says of the items of lists: those at the beginning, and all others. */
export interface ListFacts {
  readonly prefix: readonly Term[];
  readonly rest: Term | undefined;
  /** Whether it comes of a schema that values fail: `unevaluatedItems` sees nothing of it. */
  readonly isDenied?: boolean;
}

/** So many items meet a term. */
export interface ContainsFacts {
  readonly term: Term;
  readonly denied: Term;
  readonly least: number;
  readonly most: number;
}

/** What one schema says of the properties of objects. */
export interface ObjectFacts {
  readonly properties: ReadonlyMap<string, Term>;
  readonly patterns: readonly (readonly [pattern: Pattern, term: Term])[];
  /** What neither of both name. */
  readonly others: Term | undefined;
  /** Whether it comes of a schema that values fail: `unevaluatedProperties` sees nothing of it. */
  readonly isDenied?: boolean;
}

/** Each says something of values of one type, and nothing of others. */
export interface Shape {
  readonly types: readonly Type[];
  /** The values that there are; undefined for no such list. */
  readonly values: readonly unknown[] | undefined;
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
  ...{ types: TYPES, values: undefined, excluded: [] },
  ...{ least: -Infinity, most: Infinity, multiples: [], nonMultiples: [] },
  ...{ patterns: [], leastLength: 0, mostLength: Infinity },
  ...{ lists: [], contains: [], leastItems: 0, mostItems: Infinity, isUnique: false },
  ...{ objects: [], required: [], names: [], leastProperties: 0, mostProperties: Infinity },
};

type Meet<T> = (a: T, b: T) => T;
const joined = (a: readonly unknown[], b: readonly unknown[]) => [...new Set([...a, ...b])] as never[];
const greater = Math.max as Meet<number>;
const smaller = Math.min as Meet<number>;

const meets: { readonly [name in keyof Shape]: Meet<Shape[name]> } = {
  types: (a, b) => a.filter((own) => b.includes(own)),
  values: (a, b) => (a && b ? a.filter((own) => b.some((other) => equal(own, other))) : (a ?? b)),
  ...{ excluded: joined, multiples: joined, nonMultiples: joined, patterns: joined, lists: joined, contains: joined },
  ...{ objects: joined, required: joined, names: joined },
  ...{ least: greater, leastLength: greater, leastItems: greater, leastProperties: greater },
  ...{ most: smaller, mostLength: smaller, mostItems: smaller, mostProperties: smaller },
  isUnique: (a, b) => a || b,
};

/** A shape of which some facts are known. */
export type Facts = Partial<Shape>;

/** What is both. */
export function meet(shape: Shape, facts: Facts): Shape {
  const own = Object.entries(facts).map(([name, value]) => {
    const of = meets[name as keyof Shape] as Meet<unknown>;
    return [name, of(shape[name as keyof Shape], value)];
  });
  return { ...shape, ...Object.fromEntries(own) };
}

/** Whether two values of JSON are equal; the order of properties is none. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [own, other] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const keys = Object.keys(own);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && equal(own[key], other[key]))
  );
}

export function typeOf(value: unknown): Type {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : (typeof value as Type);
}
