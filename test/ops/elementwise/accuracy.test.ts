/**
 * Functions over the whole range of float32, compared with float64: every exponent and sign, with random fractions, and
 * densely where a function bends. On the cpu backend, with each instruction set; on metal, a part of it.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { gelu, geluGradient, geluTanhGradient } from "../../../src/ops/activation/gelu.ts";
import { silu, siluGradient } from "../../../src/ops/activation/silu.ts";
import { softplus } from "../../../src/ops/activation/softplus.ts";
import { onesLike } from "../../../src/ops/creation/full.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { floorDivide, fmod, remainder } from "../../../src/ops/elementwise/division.ts";
import { pow } from "../../../src/ops/elementwise/power.ts";
import { atan2 } from "../../../src/ops/elementwise/trigonometric.ts";
import * as library from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { repeats } from "../../support/repeats.ts";
import { geluBy, geluTanh, silu as siluOracle, tanhshrinkBySeries } from "../activation/oracle.ts";
import { Random } from "../samples.ts";
import { compare, ulpOf } from "../tolerance.ts";
import { erf } from "./oracle.ts";
import * as special from "./special_oracle.ts";

const random = new Random(2026);

/** `each` floats of every exponent, subnormal ones too, and of both signs; then the special ones. */
function everyExponent(each: number): Float32Array {
  const words = Uint32Array.from({ length: 512 * each }, (_, index) => (index << 23) | random.integer(0, 2 ** 23 - 1));
  const powers = Uint32Array.from({ length: 512 }, (_, index) => index << 23); // includes zeros and infinities
  return new Float32Array(Uint32Array.of(...words, ...powers).buffer);
}

const uniform = (count: number, low: number, high: number) =>
  Float32Array.from({ length: count }, () => low + random.next() * (high - low));

/** Points near the bends of functions and near multiples of π/2. */
function dense(count: number): Float32Array {
  const multiples = Float32Array.from({ length: count }, () => random.integer(-600_000, 600_000) * (Math.PI / 2));
  return Float32Array.of(
    ...uniform(count, -2, 2),
    ...uniform(count, -20, 20),
    ...uniform(count, -110, 110),
    ...multiples,
  );
}

const sigmoid = (x: number) => (x < -700 ? 0 : 1 / (1 + Math.exp(-x)));
const smoothFrom = (threshold: number) => (x: number) => (x > threshold ? x : Math.log1p(Math.exp(x)));
const smooth = smoothFrom(20);
const [seluAlpha, seluScale] = [1.6732632423543772, 1.0507009873554805];

/**
 * A name, the function, its definition, units in the last place; and the magnitude of the terms of a sum if they
 * cancel.
 */
type Case = readonly [
  name: string,
  compute: (x: Tensor) => Tensor,
  formula: (x: number) => number,
  ulps: number,
  magnitude?: (x: number) => number,
];

/** A subnormal exponential has fewer digits, and activations multiply it by up to a few hundred. */
const faintest = 2 ** -118;
const approximate = "tanh";
const quickGelu = geluBy(24);
const gradientOf = (gradient: typeof siluGradient) => (x: Tensor) => gradient(onesLike(x), x);

/** Below 0 the terms of the reflections cancel. */
const termOfLgamma = (x: number) => (x < 0 && x > -(2 ** 23) ? 1 + Math.abs(special.lgamma(1 - x)) : 0);
const termOfDigamma = (x: number) => (x < 0 && x > -(2 ** 23) ? 1 + Math.abs(special.digamma(1 - x)) : 0);

const functions: readonly Case[] = [
  ["exp", library.exp, Math.exp, 4],
  ["exp2", library.exp2, (x) => 2 ** x, 4],
  ["expm1", library.expm1, Math.expm1, 4],
  ["log", library.log, Math.log, 4],
  ["log2", library.log2, Math.log2, 4],
  ["log10", library.log10, Math.log10, 4],
  ["log1p", library.log1p, Math.log1p, 4],
  ["sqrt", library.sqrt, Math.sqrt, 1],
  ["rsqrt", library.rsqrt, (x) => 1 / Math.sqrt(x), 2],
  ["reciprocal", library.reciprocal, (x) => 1 / x, 1],
  ["tanh", library.tanh, Math.tanh, 5],
  ["sigmoid", library.sigmoid, sigmoid, 4],
  ["erf", library.erf, erf, 4],
  ["sin", library.sin, Math.sin, 4],
  ["cos", library.cos, Math.cos, 4],
  ["tan", library.tan, Math.tan, 6],
  ["softplus", softplus, smooth, 4],
  ["asin", library.asin, Math.asin, 4],
  ["acos", library.acos, Math.acos, 4],
  ["atan", library.atan, Math.atan, 5],
  ["sinh", library.sinh, Math.sinh, 4],
  ["cosh", library.cosh, Math.cosh, 4],
  ["asinh", library.asinh, Math.asinh, 4],
  ["acosh", library.acosh, Math.acosh, 4],
  ["atanh", library.atanh, Math.atanh, 5],
  ["erfc", library.erfc, special.erfc, 6],
  ["ndtr", library.ndtr, (x) => special.erfc(-x * Math.SQRT1_2) / 2, 6],
  ["erfcx", library.erfcx, special.erfcx, 6],
  ["logNdtr", library.logNdtr, special.logNdtr, 6],
  ["ndtri", library.ndtri, special.ndtri, 6],
  ["entr", library.entr, (x) => (x < 0 ? -1 / 0 : x === 0 ? 0 : -x * Math.log(x)), 3],
  ["erfinv", library.erfinv, special.erfinv, 6],
  ["sinc", library.sinc, special.sinc, 4],
  ["lgamma", library.lgamma, special.lgamma, 5, termOfLgamma],
  ["digamma", library.digamma, special.digamma, 5, termOfDigamma],
  ["gelu", gelu, quickGelu.value, 6, () => 0],
  ["gelu by tanh", (x) => gelu(x, { approximate }), geluTanh.value, 6, () => 0],
  ["silu", silu, siluOracle.value, 6, () => 0],
  ["hardswish", library.hardswish, (x) => x * (Math.min(Math.max(x + 3, 0), 6) / 6), 2],
  ["softsign", library.softsign, (x) => x / (1 + Math.abs(x)), 2],
  ["mish", library.mish, (x) => x * Math.tanh(smoothFrom(40)(x)), 6, () => 0],
  ["logSigmoid", library.logSigmoid, (x) => (x > 0 ? 0 : x) - Math.log1p(Math.exp(-Math.abs(x))), 4],
  ["tanhshrink", library.tanhshrink, tanhshrinkBySeries, 5],
  ["elu", library.elu, (x) => (x > 0 ? x : Math.expm1(x)), 4],
  ["selu", library.selu, (x) => seluScale * (x > 0 ? x : seluAlpha * Math.expm1(x)), 5],
  ["gradient of gelu", gradientOf(geluGradient), quickGelu.derivative, 6, quickGelu.magnitude],
  ["gradient of gelu by tanh", gradientOf(geluTanhGradient), geluTanh.derivative, 6, geluTanh.magnitude],
  ["gradient of silu", gradientOf(siluGradient), siluOracle.derivative, 6, siluOracle.magnitude],
];

const power = (a: number, b: number) => (a === 1 || (a === -1 && Math.abs(b) === 1 / 0) ? 1 : a ** b);
const floorRemainder = (a: number, b: number) => {
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
};

const floorQuotient = (a: number, b: number) => {
  const rest = a % b;
  const isBelow = rest !== 0 && rest < 0 !== b < 0;
  return b === 0 ? a / b : Math.floor((a - rest) / b + 0.5) - Number(isBelow); // to the nearest whole number
};

const lengthOf = (a: number, b: number) =>
  Math.abs(a) === 1 / 0 || Math.abs(b) === 1 / 0 ? 1 / 0 : Math.sqrt(a * a + b * b);

const functionsOfTwo: readonly (readonly [string, typeof pow, (a: number, b: number) => number, number])[] = [
  ["pow", pow, power, 16],
  ["atan2", atan2, Math.atan2, 6],
  ["fmod", fmod, (a, b) => a % b, 0],
  ["remainder", remainder, floorRemainder, 0.5],
  ["floorDivide", floorDivide, floorQuotient, 1],
  ["hypot", library.hypot as typeof pow, lengthOf, 3],
];

const known = new Map<unknown, unknown>();
/** Drawn numbers and their expected results, the same for all instruction sets. */
function once<Result>(row: unknown, compute: () => Result): Result {
  if (!known.has(row)) known.set(row, compute());
  return known.get(row) as Result;
}

/** Numbers that all functions get. */
const numbersOf = (size: number) =>
  once(`numbers, ${size}`, () => Float32Array.of(...everyExponent(size), ...dense(size * 100)));

function checkOne(backend: BackendName, size: number, row: Case): void {
  const [name, compute, formula, ulps, magnitude] = row;
  const x = numbersOf(size);
  const { expected, roundings } = once(`${name}, ${size}`, () => ({
    expected: Array.from(x, (value) => formula(value)),
    roundings: magnitude && Array.from(x, (value) => 6 * Math.max(magnitude(value), faintest)),
  }));
  const y = withStrict(true, () => withBackend(backend, () => compute(tensor(x)).dataSync()));
  const mismatch = compare("float32", y as Float32Array, expected, undefined, { ulps }, 2, roundings);
  expect(mismatch && { x: x[mismatch.index], ...mismatch }).toBeUndefined();
}

/** Pairs that all functions get. */
const pairsOf = (size: number) =>
  once(`pairs, ${size}`, () => {
    const wide = everyExponent(size);
    const shuffled = Float32Array.from(wide, () => wide[random.integer(0, wide.length - 1)]);
    const whole = Float32Array.from(wide, () => random.integer(-9, 9));
    const count = wide.length;
    // The quotients of these pairs may use all digits of float32 before the decimal point.
    const large = uniform(count, -(2 ** 25), 2 ** 25);
    return {
      a: Float32Array.of(...wide, ...uniform(count, -3, 3), ...uniform(count, 0, 9), ...wide, ...large),
      b: Float32Array.of(...shuffled, ...whole, ...uniform(count, -40, 40), ...wide, ...uniform(count, 0.5, 4)),
    };
  });

function checkTwo(
  backend: BackendName,
  size: number,
  [name, compute, formula, ulps]: (typeof functionsOfTwo)[number],
): void {
  const { a, b } = pairsOf(size);
  const expected = once(`${name}, ${size}`, () => Array.from(a, (value, index) => formula(value, b[index])));
  const y = withStrict(true, () => withBackend(backend, () => compute(tensor(a), tensor(b)).dataSync()));
  const mismatch = compare("float32", y as Float32Array, expected, undefined, { ulps });
  expect(mismatch && { a: a[mismatch.index], b: b[mismatch.index], ...mismatch }).toBeUndefined();
}

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => {
  configure(native, "isa", initial);
  known.clear();
});

describe.each(isas)("accuracy on cpu with %s", (isa) => {
  const on = (body: () => void) => () => {
    configure(native, "isa", isa);
    body();
  };
  for (const row of functions)
    test(
      row[0],
      on(() => checkOne("cpu", repeats({ usual: 30, all: 100 }), row)),
    );
  for (const row of functionsOfTwo)
    test(
      row[0],
      on(() => checkTwo("cpu", repeats({ usual: 8, all: 20 }), row)),
    );
});

describe("elementwise functions on metal are accurate", () => {
  for (const row of functions) test(row[0], () => checkOne("metal", 4, row));
  for (const row of functionsOfTwo) test(row[0], () => checkTwo("metal", 1, row));
});

/** All numbers of a dtype. */
function everyNumber(dtype: "float16" | "bfloat16"): Float32Array {
  const words = Array.from({ length: 2 ** 16 }, (_, index) => index);
  if (dtype === "bfloat16") return new Float32Array(Uint32Array.from(words, (word) => word << 16).buffer);
  return Float32Array.from(new Float16Array(Uint16Array.from(words).buffer));
}

/**
 * Metal computes these with fewer digits: the error is a sixteenth of the last place, in addition to the rounding
 * (narrow.h).
 */
const narrow = functions.filter(([name]) => ["sigmoid", "gelu", "gelu by tanh", "silu"].includes(name));

describe.each(["float16", "bfloat16"] as const)("functions of every number of %s are accurate on metal", (dtype) => {
  test.each(narrow.map((row) => [row[0], row] as const))(
    "%s is accurate for every number",
    (_, [, compute, formula]) => {
      const x = everyNumber(dtype);
      const narrowed = (): Tensor => compute(library.toDType(tensor(x), dtype));
      const y = withStrict(true, () => withBackend("metal", () => library.toDType(narrowed(), "float32").dataSync()));
      const isRight = (got: number, exact: number): boolean => {
        if (Number.isNaN(exact) || Math.abs(exact) === Infinity) return Object.is(got, exact);
        return Math.abs(got - exact) <= (0.5 + 1 / 16) * ulpOf(dtype, exact);
      };
      const wrong = Array.from(x, (value, at) => ({ x: value, got: Number(y[at]), exact: formula(value) })).filter(
        ({ got, exact }) => !isRight(got, exact),
      );
      expect(wrong.slice(0, 5)).toEqual([]);
    },
  );
});
