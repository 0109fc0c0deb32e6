/** Inverse circular and hyperbolic functions, the error and gamma functions and related ones, on every backend. */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { enableGrad } from "../../../src/autograd/modes.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import * as library from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { repeats } from "../../support/repeats.ts";
import { tested, testTable } from "../run.ts";
import type { Block, Values } from "../samples.ts";
import type { Expected, OperationRow } from "../table.ts";
import { ulpOf } from "../tolerance.ts";
import { floats, mapped, sampleOf, specials, unarySamples } from "./oracle.ts";
import { digamma, erfc, erfcx, erfinv, lgamma, logNdtr, ndtri, polygamma, sinc } from "./special_oracle.ts";

interface Row {
  readonly name: string;
  readonly compute: (x: Tensor) => Tensor;
  /** The definition, in float64. */
  readonly formula: (x: number) => number;
  readonly ulps: number;
  readonly values?: Values;
  /** Further values at which results are compared. */
  readonly also?: readonly number[];
  /** Whether the oracle adds up many terms. */
  readonly isSum?: boolean;
  /** Whether terms of the gradient cancel or their roundings add up: only finite differences check it then. */
  readonly cancels?: boolean;
  /** The largest term of the formula if terms cancel. Default: none do. */
  readonly magnitude?: (x: number) => number;
}

const inside = { low: -0.95, high: 0.95 } as const;
const positive = { low: 0.05, high: 12 } as const;
/** Numbers below 0, and near the zeros and poles there; exact in every dtype. */
const negative = [-0.25, -0.5, -0.75, -1.5, -2.25, -2.75, -3.5, -4.125, -7.5, -12.5];
const derivativeOf = (n: number): Row => ({
  name: `polygamma of order ${n}`,
  compute: (x) => library.polygamma(n, x),
  formula: (x) => polygamma(n, x),
  ulps: 2 * n + 4,
  values: { low: 1, high: 6 },
  also: negative,
  magnitude: (x) => (x < 0 ? 40 * n ** 2 * Math.abs(polygamma(n, Math.abs(x - Math.round(x)))) : 0),
});

const entropy = (x: number) => (x < 0 ? -1 / 0 : x === 0 ? 0 : -x * Math.log(x));

const falling = { values: { low: -2, high: 9 }, cancels: true } as const;
const rows: readonly Row[] = [
  { name: "asin", compute: library.asin, formula: Math.asin, ulps: 4, values: inside },
  { name: "acos", compute: library.acos, formula: Math.acos, ulps: 4, values: inside },
  { name: "atan", compute: library.atan, formula: Math.atan, ulps: 5 },
  { name: "sinh", compute: library.sinh, formula: Math.sinh, ulps: 4, values: { low: -9, high: 9 } },
  { name: "cosh", compute: library.cosh, formula: Math.cosh, ulps: 4, values: { low: -9, high: 9 } },
  { name: "asinh", compute: library.asinh, formula: Math.asinh, ulps: 4 },
  { name: "acosh", compute: library.acosh, formula: Math.acosh, ulps: 4, values: { low: 1.1, high: 9 } },
  { name: "atanh", compute: library.atanh, formula: Math.atanh, ulps: 5, values: inside },
  { name: "erfc", compute: library.erfc, formula: erfc, ulps: 6, isSum: true },
  { name: "ndtr", compute: library.ndtr, formula: (x) => erfc(-x * Math.SQRT1_2) / 2, ulps: 6, isSum: true },
  { name: "erfcx", compute: library.erfcx, formula: erfcx, ulps: 6, isSum: true, ...falling },
  { name: "logNdtr", compute: library.logNdtr, formula: logNdtr, ulps: 6, isSum: true, cancels: true },
  {
    name: "ndtri",
    compute: library.ndtri,
    formula: ndtri,
    ulps: 6,
    isSum: true,
    values: { low: 0.02, high: 0.98 },
    also: [0.001, 0.07, 0.08, 0.42, 0.46, 0.999],
  },
  { name: "entr", compute: library.entr, formula: entropy, ulps: 3, values: { low: 0.1, high: 5 } },
  { name: "erfinv", compute: library.erfinv, formula: erfinv, ulps: 6, values: inside, isSum: true },
  {
    name: "sinc",
    compute: library.sinc,
    formula: sinc,
    ulps: 4,
    values: { low: 0.1, high: 3 },
    also: [1e5, 3, -7, 0.75],
  },
  {
    name: "sphericalBesselJ0",
    compute: library.sphericalBesselJ0,
    formula: (x) => (x === 0 ? 1 : Math.abs(x) === Infinity ? 0 : Math.sin(x) / x),
    ulps: 4,
    values: { low: 0.1, high: 9 },
    also: [0, 1e-3, -0.75, 40, 1 / 0, -1 / 0],
  },
  {
    name: "lgamma",
    compute: library.lgamma,
    formula: lgamma,
    ulps: 4,
    values: positive,
    also: negative,
    magnitude: (x) => (x < 0 ? 8 * (1 + Math.abs(lgamma(1 - x))) : 0),
  },
  {
    name: "digamma",
    compute: library.digamma,
    formula: digamma,
    ulps: 4,
    values: positive,
    also: negative,
    magnitude: (x) => (x < 0 ? 8 * (2 + Math.abs(digamma(x))) : 0),
  },
  ...[1, 2, 3, 5].map(derivativeOf),
];

/**
 * In float64 the oracle's rounding errors matter: errors of terms up to 2 near the zeros from 1 to 3, and of long
 * sums.
 */
function withRoundings(blocks: readonly Block[], { formula, magnitude, isSum = false }: Row): Expected {
  const expected = mapped(blocks, formula);
  if (magnitude === undefined && !isSum) return expected;
  const own = (x: number, at: number) => (isSum ? 24 * Math.abs(expected.values[at]) : x > 0.5 && x < 3 ? 12 : 0);
  const isWide = blocks[0].dtype === "float64";
  return {
    ...expected,
    roundings: blocks[0].values.map((x, at) => Math.max(magnitude?.(x) ?? 0, isWide ? own(x, at) : 0)),
  };
}

const poles = [0, -1, -2, -100, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, Number.NaN];

testTable(
  "special",
  rows.map(
    (row): OperationRow => ({
      ...row,
      compute: ([x]) => row.compute(x),
      dtypes: floats,
      samples: [
        ...unarySamples(row.values),
        ...(row.also ? [sampleOf("more", row.also)] : []),
        ...(/gamma/.test(row.name) ? [] : [sampleOf("specials", specials)]),
      ],
      oracle: (blocks) => withRoundings(blocks, row),
      accuracy: { ulps: row.ulps },
      gradient: !row.cancels,
    }),
  ),
);

const { POSITIVE_INFINITY: oo, NaN: none } = Number;

describe.each(tested)("special functions on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));
  const valuesOf = (compute: (x: Tensor) => Tensor, values: readonly number[]) =>
    on(() => Array.from(compute(library.tensor([...values])).dataSync() as Float32Array));

  test("the gamma function has poles and infinities", () => {
    expect(valuesOf(library.lgamma, poles)).toEqual([oo, oo, oo, oo, oo, oo, none]);
    expect(valuesOf(library.digamma, [...poles, -0])).toEqual([-oo, none, none, none, none, oo, none, oo]);
    expect(valuesOf((x) => library.polygamma(1, x), poles)).toEqual([oo, oo, oo, oo, none, 0, none]);
    expect(valuesOf((x) => library.polygamma(2, x), poles)).toEqual([-oo, -oo, -oo, -oo, none, -0, none]);
  });

  test("the derivative of digamma is accurate at numbers of every magnitude", () => {
    const [sign, exponent] = [fc.constantFrom(-1, 1), fc.double({ min: -60, max: 60, noNaN: true })];
    const drawn = fc.tuple(sign, exponent).map(([own, power]) => Math.fround(own * 2 ** power));
    const near = fc.double({ min: -30, max: 30, noNaN: true }).map(Math.fround);
    const poleless = fc.oneof(drawn, near).filter((x) => Math.abs(x) > 2 ** -62 && (x > 0 || x !== Math.round(x)));
    const values = fc.sample(poleless, { numRuns: repeats({ usual: 1000, all: 20_000 }), seed: 12 });
    const results = valuesOf((x) => library.polygamma(1, x), values);
    const errors = values.map((x, at) => {
      // The reflection formula: for x < 0, ψ₁(x) = (π / sin πx)² − ψ₁(1 − x).
      const expected = x > 0 ? polygamma(1, x) : (1 / (x * sinc(x))) ** 2 - polygamma(1, 1 - x);
      return { x, ulps: Math.abs(results[at] - expected) / ulpOf("float32", expected) };
    });
    expect(errors.filter(({ ulps }) => ulps > 6)).toEqual([]);
  });

  test("zeros, signs and ends of domains are right", () => {
    expect(valuesOf(library.erfinv, [1, -1, 1.5, 0, -0])).toEqual([oo, -oo, none, 0, -0]);
    expect(valuesOf(library.sinc, [0, -0, 1, 2, 1e9, oo]).map(Math.abs)).toEqual([1, 1, 0, 0, 0, none]);
    expect(valuesOf(library.lgamma, [1, 2]).map(Math.abs)).toEqual([0, 0]);
    for (const odd of [library.asin, library.atan, library.sinh, library.asinh, library.atanh])
      expect(valuesOf(odd, [0, -0])).toEqual([0, -0]);
    expect(valuesOf(library.acosh, [0.5, 1, oo, -2])).toEqual([none, 0, oo, none]);
    expect(valuesOf(library.atanh, [1, -1, 2])).toEqual([oo, -oo, none]);
  });

  test("integers as operands become float32", () => {
    const whole = library.tensor([1, 2, 3], { dtype: "int32" });
    for (const { compute } of rows) expect(on(() => compute(whole)).dtype).toBe("float32");
  });
});

/**
 * From mpmath 1.3 with 50 digits.
 */
const precise: Readonly<Record<string, readonly (readonly [x: number, y: number])[]>> = {
  lgamma: [
    ...([
      [1e-10, 23.025850929882736],
      [0.1, 2.252712651734206],
      [0.99, 0.005854806764709781],
    ] as const),
    ...([
      [1.01, -0.005690307946069651],
      [1.5, -0.12078223763524522],
      [2.01, 0.004260022907098346],
    ] as const),
    ...([
      [8.25, 9.033186919605123],
      [1000, 5905.220423209181],
      [1e30, 6.807755278982137e31],
    ] as const),
    ...([
      [-1.5, 0.860047015376481],
      [-10.3, -14.457515440024208],
    ] as const),
  ],
  digamma: [
    ...([
      [1e-6, -1000000.5772140201],
      [0.1, -10.423754940411076],
      [1.4375, -0.023613544005297898],
    ] as const),
    ...([
      [2, 0.42278433509846713],
      [10.5, 2.3030010342976865],
      [1000, 6.907255195648812],
    ] as const),
    ...([
      [-0.25, 2.9141391202135276],
      [-10.3, 4.662403493582087],
    ] as const),
  ],
  trigamma: [
    ...([
      [0.01, 10001.621213528313],
      [1.4375, 0.9895029178956272],
      [200, 0.005012520833229168],
    ] as const),
    ...([
      [-0.25, 18.541879647671607],
      [-10.25, 19.646252424622652],
    ] as const),
  ],
  "of order 10": [
    ...([
      [0.5, -7431824508.858769],
      [3, -21.43660662871299],
      [200, -3.633155806594488e-18],
    ] as const),
    ...([
      [-0.25, 15220204428462.791],
      [-2.75, -15220204740670.25],
    ] as const),
  ],
  erfinv: [
    ...([
      [1e-8, 8.86226925452758e-9],
      [0.5, 0.4769362762044699],
      [-0.9, -1.1630871536766743],
    ] as const),
    ...([
      [0.9990234375, 2.331467773621948],
      [1 - 2 ** -24, 3.832506856900711],
      [1 - 2 ** -52, 5.805018683193453],
    ] as const),
  ],
  ndtr: [
    ...([
      [-3, 0.0013498980316300946],
      [0.5, 0.6914624612740131],
      [8, 0.9999999999999994],
    ] as const),
  ],
  erfc: [
    ...([
      [-3, 1.9999779095030015],
      [0.5, 0.4795001221869535],
      [2, 0.004677734981047266],
    ] as const),
    ...([
      [6, 2.1519736712498913e-17],
      [10, 2.088487583762545e-45],
      [26, 5.663192408856143e-296],
    ] as const),
  ],
};

const named: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  lgamma: library.lgamma,
  digamma: library.digamma,
  erfinv: library.erfinv,
  erfc: library.erfc,
  ndtr: library.ndtr,
  trigamma: (x) => library.polygamma(1, x),
  "of order 10": (x) => library.polygamma(10, x),
};

describe.each(["cpu", "reference"] as const)("special functions have known values in float64 on %s", (backend) => {
  test.each(Object.keys(precise))("%s equals known values in float64", (name) => {
    const points = precise[name];
    const x = points.map(([at]) => at);
    const y = withBackend(backend, () => named[name](library.tensor(x, { dtype: "float64" })).dataSync());
    for (const [at, [, expected]] of points.entries())
      expect(Math.abs(Number(y[at]) - expected) / Math.abs(expected)).toBeLessThan(3e-15);
  });
});

describe("gradients of the first and second order, by finite differences", () => {
  test.each(rows.map((row) => [row.name, row] as const))(
    "%s has gradients of the first and second order",
    (_name, { compute, values = { low: -2, high: 2 } }) => {
      const { low, high } = values as { low: number; high: number };
      const points = Array.from({ length: 6 }, (_, at) => low + ((at + 0.4) / 6) * (high - low) * 0.8);
      const gradient = (x: Tensor) => enableGrad(() => grad([library.sum(compute(x))], [x], { createGraph: true })[0]);
      withBackend("reference", () => {
        const x = library.tensor(points, { dtype: "float64", requiresGrad: true });
        gradcheck(compute, [x]);
        gradcheck(gradient, [x]);
      });
    },
  );
});
