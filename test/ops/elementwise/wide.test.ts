/**
 * Functions of float64 over the whole range of arguments, compared with JavaScript's Math and, where it has none, with
 * the reference backend: every exponent and sign, multiples of π/2, ends of domains, zeros, infinities and NaN.
 */
import { describe, expect, test } from "bun:test";
import * as library from "../../../src/index.ts";
import { withBackend } from "../../../src/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { Random } from "../samples.ts";
import { ulpOf } from "../tolerance.ts";

type Unary = (x: Tensor) => Tensor;
type Binary = (a: Tensor, b: Tensor) => Tensor;

const edges = [0, -0, Infinity, -Infinity, NaN, 1, -1, 0.5, -0.5, 5e-324, -5e-324, 1e-310, 1e308, -1e308];
const random = new Random(8123);
const draw = (): number => random.next();
const between = (low: number, high: number): number => low + (high - low) * draw();
const many = (count: number, each: () => number): number[] => Array.from({ length: count }, each);
const sign = (): number => (draw() < 0.5 ? -1 : 1);

/** Numbers of all magnitudes from 2^low to 2^high. */
const magnitudes = (low: number, high: number, count = 600): number[] =>
  many(count, () => sign() * between(1, 2) * 2 ** between(low, high));

const usual = [...many(800, () => between(-3, 3)), ...many(300, () => between(-30, 30)), ...edges];
const angles = [
  ...usual,
  ...magnitudes(-60, 60),
  ...many(600, () => Math.round(between(1, 600_000)) * (Math.PI / 2) * (1 + Math.round(between(-2, 2)) * 2 ** -52)),
  ...many(300, () => between(-1.1e6, 1.1e6)),
];
const shares = [
  ...many(800, () => between(-1, 1)),
  ...many(300, () => sign() * (1 - draw() * 2 ** -Math.floor(between(1, 53)))),
  ...magnitudes(-60, 1, 200),
  ...edges,
];
const all = [...usual, ...magnitudes(-1000, 1000)];
const exponents = [...usual, ...magnitudes(-60, 9.5)];

/**
 * A function, its oracle, its arguments, and the largest error in units in the last place. The reference's erfc rounds
 * x², so far from 0 it is less accurate than cpu's.
 */
const rows: readonly (readonly [
  name: string,
  of: Unary,
  oracle: (x: number) => number,
  at: number[],
  ulps: number | ((x: number) => number),
])[] = [
  ["sin", library.sin, Math.sin, angles, 2],
  ["cos", library.cos, Math.cos, angles, 2],
  ["tan", library.tan, Math.tan, angles, 4],
  ["asin", library.asin, Math.asin, shares, 3],
  ["acos", library.acos, Math.acos, shares, 3],
  ["atanh", library.atanh, Math.atanh, shares, 4],
  ["atan", library.atan, Math.atan, all, 2],
  ["sinh", library.sinh, Math.sinh, exponents, 4],
  ["cosh", library.cosh, Math.cosh, exponents, 4],
  ["asinh", library.asinh, Math.asinh, all, 4],
  ["acosh", library.acosh, Math.acosh, [...many(900, () => 1 + 2 ** between(-50, 900)), ...edges], 4],
  ["log10", library.log10, Math.log10, [...all, ...all.map(Math.abs)], 2],
  ["erf", library.erf, onReference(library.erf), exponents, 4],
  ["erfc", library.erfc, onReference(library.erfc), exponents, (x) => 16 + 2 * x * x],
];

const known = [
  [11.87324455473572, 2.8257005160498535e-63],
  [5.3, 6.613081850340811e-14],
  [-2.7, 1.9998656672600594],
  [0.31, 0.6610918496892098],
  [19.641, 8.325380231352593e-170],
  [25.9, 1.0202833184732667e-293],
  [1e-9, 0.9999999988716208],
  [3.0000001, 2.209048307328445e-5],
  [8.25, 1.8735664705504997e-31],
] as const;

function onReference(of: Unary): (x: number) => number {
  return (x) => withBackend("reference", () => of(library.tensor([x], { dtype: "float64" })).item() as number);
}

/** Compares a result with its oracle's, signs of zeros included. */
function check(got: number, expected: number, ulps: number, call: string): void {
  if (Object.is(got, expected)) return;
  const isClose = Math.abs(got - expected) <= ulps * ulpOf("float64", expected);
  const hasSign = got !== 0 || expected !== 0 || Object.is(got, expected);
  if (!isClose || !hasSign) expect(`${call} = ${got}`).toBe(`${call} = ${expected}`);
}

const onCpu = (compute: () => Tensor): Float64Array => withBackend("cpu", () => compute().dataSync() as Float64Array);
const vector = (values: readonly number[]): Tensor => library.tensor(Float64Array.from(values), { dtype: "float64" });

describe("functions of float64 on cpu", () => {
  test.each(rows)("%s", (name, of, oracle, values, ulps) => {
    const results = onCpu(() => of(vector(values)));
    for (const [at, x] of values.entries())
      check(results[at], oracle(x), typeof ulps === "number" ? ulps : ulps(x), `${name}(${x})`);
    expect(results.length).toBe(values.length);
  });

  test("erfc equals values of mpmath", () => {
    const results = onCpu(() => library.erfc(vector(known.map(([x]) => x))));
    for (const [at, [x, value]] of known.entries()) check(results[at], value, 6, `erfc(${x})`);
  });

  test("log10 of powers of ten is exact", () => {
    const powers = Array.from({ length: 601 }, (_, at) => at - 300);
    const results = onCpu(() => library.log10(vector(powers.map((power) => Number(`1e${power}`)))));
    expect([...results]).toEqual(powers.map((power) => power + 0));
  });
});

const pairs = ((): [number[], number[]] => {
  const a = [...usual, ...magnitudes(-900, 900)];
  const b = [...usual.toReversed(), ...magnitudes(-900, 900)];
  for (const first of edges)
    for (const second of edges) {
      a.push(first);
      b.push(second);
    }
  return [a, b];
})();

/** Dividends and divisors, of which every third quotient is an integer. */
const divisions = ((): [number[], number[]] => {
  const b = many(1500, () => sign() * (draw() < 0.5 ? between(0, 3) : Math.round(between(1, 20)) / 10));
  const a = b.map((by, at) => (at % 3 === 0 ? by * Math.round(between(-999, 999)) : sign() * 2 ** between(-20, 58)));
  for (const first of edges)
    for (const second of edges) {
      a.push(first);
      b.push(second);
    }
  return [a, b];
})();

/** Python's definition: the sign of the divisor. */
function floored(a: number, b: number): number {
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
}

const pairRows: readonly (readonly [string, Binary, (a: number, b: number) => number, [number[], number[]], number])[] =
  [
    ["atan2", library.atan2, Math.atan2, pairs, 3],
    ["hypot", library.hypot, Math.hypot, pairs, 3],
    ["fmod", library.fmod, (a, b) => a % b, divisions, 0],
    ["remainder", library.remainder, floored, divisions, 0],
  ];

describe("functions of two float64 on cpu", () => {
  test.each(pairRows)("%s", (name, of, oracle, [a, b], ulps) => {
    const results = onCpu(() => of(vector(a), vector(b)));
    for (const [at, x] of a.entries()) {
      const expected = oracle(x, b[at]);
      // The sign of a zero remainder follows the divisor.
      if (expected === 0 && name === "remainder") expect(results[at]).toBeCloseTo(0, 300);
      else check(results[at], expected, ulps, `${name}(${x}, ${b[at]})`);
    }
  });

  test("floorDivide is the integer below the quotient", () => {
    const [a, b] = divisions;
    const results = onCpu(() => library.floorDivide(vector(a), vector(b)));
    for (const [at, x] of a.entries()) {
      const quotient = x / b[at];
      if (!Number.isFinite(quotient) || Math.abs(quotient) > 2 ** 50) continue;
      const expected = (x - floored(x, b[at])) / b[at];
      if (Number.isFinite(expected)) expect(results[at] + 0).toBe(Math.round(expected) + 0);
    }
  });
});
