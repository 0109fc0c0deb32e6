/** Limits and keywords of the argument tables: functions accept exactly what their errors say is expected. */
import { describe, expect, test } from "bun:test";
import { type Kind, signatures } from "../../src/core/parameters.ts";
import "../../src/index.ts"; // every signature

/** The neighbors of a number, in float64. */
function neighbor(value: number, direction: 1 | -1): number {
  if (value === 0) return direction * Number.MIN_VALUE;
  const bits = new BigInt64Array(Float64Array.of(value).buffer);
  bits[0] += BigInt(value > 0 ? direction : -direction);
  return new Float64Array(bits.buffer)[0];
}

/** Values on both sides of the limits that a description sets. */
interface Sides {
  readonly taken: readonly number[];
  readonly refused: readonly number[];
}

const atLeast = (least: number): Sides => ({ taken: [least, neighbor(least, 1)], refused: [neighbor(least, -1)] });
const above = (limit: number): Sides => ({ taken: [neighbor(limit, 1)], refused: [limit, neighbor(limit, -1)] });
const atMost = (most: number): Sides => ({ taken: [most, neighbor(most, -1)], refused: [neighbor(most, 1)] });
const below = (limit: number): Sides => ({ taken: [neighbor(limit, -1)], refused: [limit, neighbor(limit, 1)] });
const wholeFrom = (least: number): Sides => ({ taken: [least, least + 1], refused: [least - 1, least + 0.5] });
const wholeTo = (most: number): Sides => ({ taken: [most, most - 1], refused: [most + 1, most - 0.5] });
const notFinite: Sides = { taken: [], refused: [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN] };
const both = (...sides: readonly Sides[]): Sides => ({
  taken: sides.flatMap(({ taken }) => taken),
  refused: sides.flatMap(({ refused }) => refused),
});

const infinite: Sides = { taken: [Number.POSITIVE_INFINITY], refused: [Number.NaN] };

const N = String.raw`(-?[\d.]+)`;

/** The limits in a description. */
const words: readonly (readonly [pattern: string, sides: (first: number, second: number) => Sides])[] = [
  [`a number of at least ${N}`, atLeast],
  [`a number above ${N}`, above],
  [`a number above ${N} and at most ${N}`, (limit, most) => both(above(limit), atMost(most), notFinite)],
  [`a finite number`, () => both(notFinite, { taken: [0, -1e300, Number.MAX_VALUE], refused: [] })],
  [`a finite number of at least ${N}`, (least) => both(atLeast(least), notFinite)],
  [`a finite number above ${N}`, (limit) => both(above(limit), notFinite)],
  [`a (?:number|fraction) from ${N} to ${N}`, (least, most) => both(atLeast(least), atMost(most), notFinite)],
  [`a number of at least ${N} and below ${N}`, (least, limit) => both(atLeast(least), below(limit), notFinite)],
  [`a number between ${N} and ${N}`, (low, high) => both(above(low), below(high), notFinite)],
  [String.raw`a probability in \[${N}, ${N}\)`, (least, limit) => both(atLeast(least), below(limit), notFinite)],
  [String.raw`a probability in \[${N}, ${N}\]`, (least, most) => both(atLeast(least), atMost(most), notFinite)],
  [`a probability above ${N}`, (limit) => both(above(limit), atMost(1), notFinite)],
  [`a whole number of at least ${N}`, (least) => both(wholeFrom(least), notFinite)],
  [`a whole number above ${N}`, (limit) => both(wholeFrom(limit + 1), notFinite)],
  [`a whole number of at least ${N} and at most ${N}`, (least, most) => both(wholeFrom(least), wholeTo(most))],
  [`a whole number from ${N} to ${N}`, (least, most) => both(wholeFrom(least), wholeTo(most), notFinite)],
  [`a whole number`, () => both(notFinite, { taken: [-3, 0, 3], refused: [0.5] })],
  [`a whole number of at least ${N}, or Infinity`, (least) => both(wholeFrom(least), infinite)],
  [`a whole number other than 0`, () => ({ taken: [1, -1], refused: [0, -0, 0.5, Number.NaN] })],
  [`a number other than 0`, () => ({ taken: [1, -1, Number.MIN_VALUE], refused: [0, -0] })],
  [`a number of at least ${N}(?:, or Infinity|, Infinity included)`, (least) => both(atLeast(least), infinite)],
  [`a number above ${N}, or Infinity`, (limit) => both(above(limit), infinite)],
  [
    `a number of at most ${N}, or -Infinity`,
    (most) => both(atMost(most), { taken: [Number.NEGATIVE_INFINITY], refused: [Number.NaN] }),
  ],
];

function sidesOf(expected: string): Sides | undefined {
  for (const [pattern, sides] of words) {
    const [match, first, second] = new RegExp(`^${pattern}$`).exec(expected) ?? [];
    if (match !== undefined) return sides(Number(first), Number(second));
  }
  return undefined;
}

/** Every parameter of every signature. */
const all = [...signatures.values()].flatMap(({ operation, parameters }) =>
  Object.entries(parameters).map(([name, { kind }]) => ({ operation, name, kind })),
);

/** Whether a kind accepts a value. Kinds with more specific errors throw. */
function takes({ kind, operation, name }: { kind: Kind<unknown>; operation: string; name: string }, value: unknown) {
  try {
    return kind.parse(value, operation, name) !== undefined;
  } catch {
    return false;
  }
}

describe("documented limits of numbers hold", () => {
  const limited = all.filter(({ kind }) => sidesOf(kind.expected) !== undefined);

  test("limits match their description", () => {
    const wrong = limited.flatMap((parameter) => {
      const { taken, refused } = sidesOf(parameter.kind.expected)!;
      const place = `${parameter.operation}.${parameter.name} (${parameter.kind.expected})`;
      return [
        ...taken.filter((value) => !takes(parameter, value)).map((value) => `${place} refuses ${value}`),
        ...refused.filter((value) => takes(parameter, value)).map((value) => `${place} takes ${value}`),
      ];
    });
    expect(wrong).toEqual([]);
  });

  test("limits are known for every limited number", () => {
    const isNumber = /^a (?:finite |whole )?(?:number|probability|fraction)\b(?!.* or (?:a|an|null|two|\[))/;
    const unread = all.map(({ kind }) => kind.expected).filter((own) => isNumber.test(own) && !sidesOf(own));
    expect([...new Set(unread)].sort()).toEqual([
      "a number", // the operation's error has this text and more
      "a number, ±Infinity included",
      'a number, ±Infinity included or "fro"',
      "a whole number of at least 0 and below 2^64 (a bigint from 2^53 on)", // tested in test/random
    ]);
    expect(limited.length).toBeGreaterThan(300);
  });
});

describe("unknown keywords are rejected", () => {
  const choices = all.flatMap((parameter) => {
    const { expected } = parameter.kind;
    const isChoice = /^"[^"]*"(?:(?:, | or )"[^"]*")*$/.test(expected);
    return isChoice ? [{ ...parameter, words: [...expected.matchAll(/"([^"]*)"/g)].map(([, word]) => word) }] : [];
  });

  test("errors list exactly the accepted keywords", () => {
    for (const { words: own, ...parameter } of choices) {
      const place = `${parameter.operation}.${parameter.name}`;
      for (const word of own) {
        expect([place, word, takes(parameter, word)]).toEqual([place, word, true]);
        for (const other of [`${word}x`, word.slice(1), ` ${word}`])
          if (!own.includes(other)) expect([place, other, takes(parameter, other)]).toEqual([place, other, false]);
      }
    }
    expect(choices.length).toBeGreaterThan(80);
  });
});
