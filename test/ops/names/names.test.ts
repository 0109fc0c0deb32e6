/**
 * Every name of every enumeration computes something different on every backend: by far the nearest reference result is
 * that of the same name, and it is not an operand. This finds a name that falls through to another name's formula, or
 * that returns its operand. An enumeration that is missing in the table fails.
 */
import { describe, expect, test } from "bun:test";
import { enumerations } from "../../../src/backend/enumeration.ts";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { whyUnavailable } from "../../../src/backend/registry.ts";
import "../../../src/index.ts"; // defines all operations
import { tested } from "../run.ts";
import * as operations from "./operations.ts";
import * as options from "./options.ts";
import { numbersOf, type Walk } from "./walk.ts";
import * as weights from "./weights.ts";

/** For each enumeration, keyed by its type in camelCase, the tables of its names: see walk.ts. */
const walks: Readonly<Record<string, readonly Walk[]>> = { ...operations, ...options, ...weights };
const walksOf = (type: string): readonly Walk[] => walks[`${type[0].toLowerCase()}${type.slice(1)}`] ?? [];

/**
 * The minimum ratio between the distance to any other name's result and the distance to the expected result. Rounding
 * errors never come near it.
 */
const NEARER = 64;

/** 0 for equal numbers, 1 if only one of them is finite, else relative to their size. */
function apart(a: number, b: number): number {
  if (Object.is(a, b) || a === b) return 0;
  return Number.isFinite(a) && Number.isFinite(b) ? Math.abs(a - b) / (1 + Math.abs(a) + Math.abs(b)) : 1;
}

/** The mean distance of the numbers of two lists. If one list is longer, the rest of it is ignored. */
function distance(a: readonly number[], b: readonly number[]): number {
  const count = Math.min(a.length, b.length);
  return a.slice(0, count).reduce((total, own, at) => total + apart(own, b[at]), 0) / count;
}

const on = <Result>(backend: BackendName, body: () => Result): Result =>
  withStrict(true, () => withBackend(backend, body));

const resultsOn = (backend: BackendName, walk: Walk, name: string): number[] =>
  on(backend, () => numbersOf(walk.compute(name, walk.operands())));

interface Expected {
  readonly results: ReadonlyMap<string, number[]>;
  /** Results that no name may have: the operands, and the result without an option. */
  readonly others: ReadonlyMap<string, number[]>;
}

const memo = new Map<Walk, Expected>();

/** The reference backend's results. */
function expectedOf(walk: Walk): Expected {
  const known = memo.get(walk);
  if (known) return known;
  const others = on("reference", () => {
    const operands = walk.operands();
    const numbers = operands.map((operand, at) => [`operand ${at}`, numbersOf(operand)] as const);
    return new Map([...numbers, ...(walk.base ? [["no option", numbersOf(walk.base(operands))] as const] : [])]);
  });
  const expected = { results: new Map(walk.names.map((name) => [name, resultsOn("reference", walk, name)])), others };
  memo.set(walk, expected);
  return expected;
}

const sameAs = ({ same = [] }: Walk, name: string): readonly string[] =>
  same.find((names) => names.includes(name)) ?? [name];

/** Describes what is wrong with the result of a name; nothing if it is by far the nearest to its expected result. */
function mistake(walk: Walk, name: string, found: readonly number[]): string | undefined {
  const { results, others } = expectedOf(walk);
  const expected = results.get(name)!;
  if (found.length !== expected.length) return `${name} has ${found.length} numbers, not ${expected.length}`;
  if (!found.some(Number.isFinite)) return `${name} has no finite number`;
  const off = distance(found, expected);
  const foreign = walk.unchanged?.includes(name) ? [...results] : [...results, ...others];
  const [nearest] = foreign
    .filter(([other]) => !sameAs(walk, name).includes(other))
    .map(([other, numbers]) => [distance(found, numbers), other] as const)
    .sort(([a], [b]) => a - b);
  if (!nearest || nearest[0] > NEARER * off) return undefined;
  return `${name} is ${off} from the reference backend's ${name}, and ${nearest[0]} from ${nearest[1]}`;
}

test.each(enumerations().map(({ type, names }) => [type, names] as const))(
  "%s: a test reaches every name",
  (type, names) => {
    const walked = new Set(walksOf(type).flatMap((walk) => walk.names));
    expect([...walked].sort()).toEqual([...names].sort());
  },
);

test("every test belongs to an enumeration", () => {
  const types = enumerations().map(({ type }) => `${type[0].toLowerCase()}${type.slice(1)}`);
  expect(Object.keys(walks).filter((type) => !types.includes(type))).toEqual([]);
});

describe.each(tested.map((backend) => [backend]))("names of functions on %s", (backend) => {
  for (const { type } of enumerations()) {
    for (const [at, walk] of walksOf(type).entries()) {
      test(`${type}, test ${at + 1}: each name computes something different`, () => {
        expect(whyUnavailable(backend)).toBeUndefined();
        const mistakes = walk.names.map((name) => mistake(walk, name, resultsOn(backend, walk, name)));
        expect(mistakes.filter((found) => found !== undefined)).toEqual([]);
      });
    }
  }
});

test("names that are declared equal give equal results on these operands", () => {
  for (const walk of Object.values(walks).flat()) {
    const { results, others } = expectedOf(walk);
    for (const names of walk.same ?? []) {
      const [first, ...others] = names.map((name) => results.get(name)!);
      for (const other of others) expect(distance(first, other)).toBeLessThan(1e-6);
    }
    for (const name of walk.unchanged ?? [])
      expect(Math.min(...[...others.values()].map((own) => distance(own, results.get(name)!)))).toBeLessThan(1e-6);
  }
});
