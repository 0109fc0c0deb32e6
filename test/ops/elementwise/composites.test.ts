/** Elementwise functions composed of others, and the modified Bessel functions, on every backend. */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import * as library from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { gradientOf, leaf } from "../activation/rows.ts";
import { testTable } from "../run.ts";
import { rounder, type Values } from "../samples.ts";
import type { OperationRow } from "../table.ts";
import { binarySamples, floats, integers, mapped, pairs, sampleOf, signed, specials, unarySamples } from "./oracle.ts";
import { lgamma, scaledBessel } from "./special_oracle.ts";

const { POSITIVE_INFINITY: oo, NaN: none } = Number;

/** I₀ or I₁, multiplied by e^(|x|/2) twice, since e^|x| overflows before the function does. */
function bessel(n: 0 | 1, x: number): number {
  if (!Number.isFinite(x)) return n === 1 ? x : Math.abs(x);
  const root = Math.exp(Math.abs(x) / 2);
  return root * scaledBessel(n, x) * root;
}

/** Computed by logarithms; near ½, where they cancel, by 2 Σ d^(2k + 1)/(2k + 1) with d = 2x − 1. */
function logit(x: number): number {
  const d = 2 * x - 1;
  if (!(Math.abs(d) < 0.6)) return Math.log(x) - Math.log1p(-x);
  let sum = 0;
  for (let k = 40; k >= 0; k--) sum = sum * d * d + 1 / (2 * k + 1);
  return 2 * d * sum;
}
const multivariate = (x: number, p: number): number =>
  Array.from({ length: p }, (_, j) => lgamma(x - j / 2)).reduce((sum, own) => sum + own, 0) +
  ((p * (p - 1)) / 4) * Math.log(Math.PI);

interface Row {
  readonly name: string;
  readonly compute: (x: Tensor) => Tensor;
  /** The definition, in float64. */
  readonly formula: (x: number) => number;
  readonly ulps: number;
  readonly values: Values;
  /** Further values at which results are compared. */
  readonly also?: readonly number[];
  /** Whether terms of the gradient cancel: only finite differences check it then. */
  readonly cancels?: boolean;
  /** The largest term of the formula if terms cancel or the oracle adds many. */
  readonly magnitude?: (x: number) => number;
}

const some: Values = { low: -3, high: 3 };
const rows: readonly Row[] = [
  {
    name: "i0",
    compute: library.i0,
    formula: (x) => bessel(0, x),
    ulps: 6,
    values: { low: -4, high: 4 },
    also: [0, -0, 11.5, 12.5, 19.5, -20.5, 60, 85, oo, -oo, none],
    magnitude: (x) => 40 * bessel(0, x),
  },
  {
    name: "i1",
    compute: library.i1,
    formula: (x) => bessel(1, x),
    ulps: 6,
    values: { low: 0.5, high: 4 },
    also: [0, 11.5, 12.5, 19.5, -20.5, 60, -85, oo, -oo, none],
    magnitude: (x) => 40 * bessel(0, x),
  },
  ...([0, 1] as const).map((n) => ({
    name: `i${n}e`,
    compute: n === 0 ? library.i0e : library.i1e,
    formula: (x: number) => scaledBessel(n, x),
    ulps: 8,
    values: { low: 0.5, high: 4 },
    also: [0, 11.5, 12.5, 19.5, -20.5, 60, -85, 1e4, oo, -oo, none],
    magnitude: (x: number) => 40 * scaledBessel(0, x),
    cancels: true,
  })),
  {
    name: "logit",
    compute: library.logit,
    formula: logit,
    ulps: 6,
    values: { low: 0.05, high: 0.95 },
    also: [0, 1, 0.25, 0.75, -0.5, 2, oo, none],
    magnitude: () => 2,
  },
  {
    name: "mvlgamma",
    compute: (x) => library.mvlgamma(x, 3),
    formula: (x) => multivariate(x, 3),
    ulps: 4,
    values: { low: 1.5, high: 9 },
    magnitude: (x) => 24 + 6 * Math.abs(lgamma(x)),
  },
  { name: "deg2rad", compute: library.deg2rad, formula: (x) => (x * Math.PI) / 180, ulps: 2, values: some },
  { name: "rad2deg", compute: library.rad2deg, formula: (x) => (x * 180) / Math.PI, ulps: 2, values: some },
];

testTable(
  "composites",
  rows.map(
    ({ name, compute, formula, ulps, values, also, magnitude, cancels }): OperationRow => ({
      name,
      compute: ([x]) => compute(x),
      dtypes: floats,
      samples: [...unarySamples(values), ...(also ? [sampleOf("more", also)] : [])],
      oracle: (blocks) => {
        const expected = mapped(blocks, formula);
        const roundings = magnitude && blocks[0].values.map((x) => (Number.isFinite(x) ? magnitude(x) : 0));
        return { ...expected, ...(roundings && { roundings }) };
      },
      accuracy: { ulps },
      gradient: !cancels,
    }),
  ),
);

const everything: readonly DType[] = [...floats, ...integers, "bool"];
testTable(
  "infinities by their sign",
  [
    { name: "isposinf", compute: library.isposinf, infinity: oo },
    { name: "isneginf", compute: library.isneginf, infinity: -oo },
  ].map(
    ({ name, compute, infinity }): OperationRow => ({
      name,
      compute: ([x]) => compute(x),
      dtypes: everything,
      samples: [...unarySamples(), sampleOf("specials", specials)],
      oracle: (blocks) => mapped(blocks, (x) => Number(x === infinity), "bool"),
      accuracy: { ulps: 0 },
      gradient: false,
    }),
  ),
);

const larger = (a: number, b: number) => (Number.isNaN(a) || a < b ? b : a);
const smaller = (a: number, b: number) => (Number.isNaN(a) || a > b ? b : a);
const ofNumbers =
  (choose: (a: number, b: number) => number) =>
  (a: number, b: number): number =>
    Number.isNaN(b) ? a : choose(a, b);
const logOfSum = (a: number, b: number) =>
  a === b ? a + 1 : Math.max(a, b) + Math.log1p(2 ** -Math.abs(a - b)) * Math.LOG2E;

testTable(
  "pairs",
  (
    [
      ["fmax", library.fmax, ofNumbers(larger), everything],
      ["fmin", library.fmin, ofNumbers(smaller), everything],
      ["logaddexp2", library.logaddexp2, logOfSum, floats],
    ] as const
  ).map(
    ([name, compute, formula, dtypes]): OperationRow => ({
      name,
      compute: ([a, b]) => compute(a, b),
      dtypes,
      samples: [...binarySamples(), sampleOf("specials", ...pairs(specials))],
      oracle: (blocks) => {
        const expected = mapped(blocks, formula as (...all: number[]) => number);
        if (name !== "logaddexp2") return expected;
        const roundings = mapped(blocks, (a, b) => 8 * Math.max(Math.abs(a), Math.abs(b), 1)).values;
        return { ...expected, roundings: roundings.map((own) => (Number.isFinite(own) ? own : 0)) };
      },
      accuracy: { ulps: name === "logaddexp2" ? 4 : 0 },
      elementwise: true,
      gradient: true,
    }),
  ),
);

const widths: Readonly<Partial<Record<DType, bigint>>> = { int64: 64n, int32: 32n, uint32: 32n, int8: 8n, uint8: 8n };
const shift = (dtype: DType, formula: (a: bigint, b: bigint) => bigint, outside: (a: number) => number) => {
  const width = widths[dtype]!;
  const wrap = dtype.startsWith("u") ? BigInt.asUintN : BigInt.asIntN;
  return (a: number, b: number): number =>
    b < 0 || BigInt(b) >= width ? outside(a) : Number(wrap(Number(width), formula(BigInt(a), BigInt(b))));
};

testTable(
  "shifts",
  (
    [
      ["bitwiseLeftShift", library.bitwiseLeftShift, (a: bigint, b: bigint) => a << b, () => 0],
      ["bitwiseRightShift", library.bitwiseRightShift, (a: bigint, b: bigint) => a >> b, (a: number) => -Number(a < 0)],
    ] as const
  ).map(
    ([name, compute, formula, outside]): OperationRow => ({
      name,
      dtypes: integers,
      gradient: false,
      accuracy: { ulps: 0 },
      compute: ([a, b]) => compute(a, b),
      samples: [
        ...binarySamples({ integers: [0, 127] }, { integers: [0, 9] }),
        signs([-128, -7, -1, 0, 1, 127], [-1, 0, 1, 6, 7, 8, 31, 32, 63, 64, 100]),
      ],
      oracle: (blocks) =>
        mapped(blocks, (a, b) => rounder(blocks[0].dtype)(shift(blocks[0].dtype, formula, outside)(a, b) + 0)),
    }),
  ),
);

function signs(first: readonly number[], second: readonly number[]) {
  const [a, b] = pairs(first, second);
  const operand = (list: readonly number[]) => ({ shape: [list.length], values: { list } });
  return { name: "signs", inputs: [operand(a), operand(b)], options: undefined, dtypes: signed };
}

describe.each(["cpu", "reference"] as const)("elementwise functions of several operations on %s", (backend) => {
  const check = (compute: (...all: Tensor[]) => Tensor, leaves: Tensor[]) =>
    withBackend(backend, () => expect(gradcheck(compute, leaves)).toBe(true));
  const positive = () => {
    const x = library.add(library.abs(leaf([3, 4], 3)), 0.3).detach();
    x.requiresGrad = true;
    return x;
  };

  test.each([
    ["i0e", library.i0e],
    ["i1e", library.i1e],
  ])("gradients of %s equal finite differences", (_name, compute) => check((x) => compute(x), [leaf([3, 4], 1)]));

  test.each([
    ["addcmul", (...[x, a, b]: Tensor[]) => library.addcmul(x, a, b, { value: -0.5 })],
    ["addcdiv", (...[x, a, b]: Tensor[]) => library.addcdiv(x, a, b, { value: -0.5 })],
    ["floatPower", (...[x, a, b]: Tensor[]) => library.mul(library.floatPower(b, a), x)],
  ])("gradients of %s equal finite differences", (_name, compute) =>
    check(compute, [leaf([3, 1], 1), leaf([4], 2), positive()]),
  );

  test.each([
    ["i0", library.i0],
    ["i1", library.i1],
    ["logaddexp2", (x: Tensor) => library.logaddexp2(x, library.mul(x, 0.3))],
    ["fmax", (x: Tensor) => library.fmax(library.square(x), 0.5)],
    ["logit", (x: Tensor) => library.logit(library.sigmoid(x))],
  ])("gradients of gradients of %s equal finite differences", (_name, compute) =>
    check((g, x) => gradientOf(compute)(g, x)[0], [leaf([5, 4], 1), leaf([5, 4], 2)]),
  );

  test("addcmul and addcdiv accept numbers of every kind", () =>
    withBackend(backend, () => {
      const large = library.tensor([2n ** 53n + 1n]);
      expect(library.addcmul(large, large, 2n, { value: 3 }).toArray()).toEqual([7n * (2n ** 53n + 1n)]);
      const half = library.tensor([1, 2], { dtype: "float16" });
      expect(library.addcdiv(half, half, 3).dtype).toBe("float16");
      expect(library.addcdiv(half, half, 3).toArray()).toEqual([1 + 1 / 3, 2 + 2 / 3].map(rounder("float16")));
    }));
});
