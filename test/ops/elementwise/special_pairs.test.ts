/** hypot, logaddexp, xlogy, copysign, heaviside, nextafter, gcd and lcm on every backend. */
import { describe, expect, test } from "bun:test";
import { enableGrad } from "../../../src/autograd/modes.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import * as library from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested, testTable } from "../run.ts";
import { rounder, type Values } from "../samples.ts";
import type { OperationRow } from "../table.ts";
import { binarySamples, floats, integers, mapped, pairs, sampleOf, specials } from "./oracle.ts";

type Compute = (a: Tensor, b: Tensor) => Tensor;

const isNegative = (x: number) => x < 0 || Object.is(x, -0);
const length = (a: number, b: number) => {
  const [small, large] = [Math.min(Math.abs(a), Math.abs(b)), Math.max(Math.abs(a), Math.abs(b))];
  if (Math.abs(a) === 1 / 0 || Math.abs(b) === 1 / 0) return 1 / 0;
  return large === 0 ? 0 : large * Math.sqrt(1 + (small / large) ** 2);
};
const logOfSum = (a: number, b: number) => {
  if (a === b) return a + Math.LN2;
  const [small, large] = [Math.min(a, b), Math.max(a, b)];
  return Number.isFinite(large) ? large + Math.log1p(Math.exp(small - large)) : large;
};
const timesLog = (a: number, b: number) => (Number.isNaN(b) ? b : a === 0 ? 0 : a * Math.log(b));
const timesLog1p = (a: number, b: number) => (Number.isNaN(b) ? b : a === 0 ? 0 : a * Math.log1p(b));
const step = (x: number, atZero: number) => (x < 0 ? 0 : x > 0 ? 1 : x === 0 ? atZero : 0);

const formats: Readonly<Partial<Record<DType, number>>> = { float16: 2 ** -24, bfloat16: 2 ** -133 };
const steps: Readonly<Partial<Record<DType, number>>> = { float16: 2 ** -10, bfloat16: 2 ** -7 };

/** The first number beyond a that rounds to another one, found by bisection. */
function nextOf(a: number, b: number, dtype: DType): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.NaN;
  if (a === b) return b;
  const sign = b > a ? 1 : -1;
  if (dtype === "float32" || dtype === "float64") return neighbor(a, sign, dtype);
  if (a === 0) return sign * formats[dtype]!;
  if (!Number.isFinite(a))
    return Math.sign(a) * { float16: 65504, bfloat16: (2 - 2 ** -7) * 2 ** 127 }[dtype as "float16"];
  const round = rounder(dtype);
  let distance = Math.max(Math.abs(a) * steps[dtype]!, formats[dtype]!);
  while (round(a + (sign * distance) / 2) !== a && distance > formats[dtype]!) distance /= 2;
  return round(a + sign * distance * 1.0001);
}

/** Returns the next number up or down, by the order of the bits. */
function neighbor(a: number, sign: number, dtype: "float32" | "float64"): number {
  const number = dtype === "float32" ? new Float32Array([a]) : new Float64Array([a]);
  const bits = dtype === "float32" ? new Int32Array(number.buffer) : new BigInt64Array(number.buffer);
  if (a === 0) return sign * (dtype === "float32" ? 2 ** -149 : Number.MIN_VALUE);
  const isUp = a > 0 === sign > 0;
  if (bits instanceof Int32Array) bits[0] += isUp ? 1 : -1;
  else bits[0] += isUp ? 1n : -1n;
  return number[0];
}

interface Row {
  readonly name: string;
  readonly compute: Compute;
  readonly formula: (a: number, b: number) => number;
  readonly ulps?: number;
  readonly values?: readonly [Values, Values];
  readonly gradient?: boolean;
  readonly dtypes?: readonly DType[];
  /** The largest term, if terms cancel. */
  readonly magnitude?: (a: number, b: number) => number;
}

const nonzero: Values = { list: [0.7, -1.3, 2.4, -0.6, 1.9, -3.1, 1.1] };
const some: Values = { low: -3, high: 3 };
const positive: Values = { low: 0.2, high: 4 };
const few: Values = { integers: [-1, 1] };

const rows: readonly Row[] = [
  { name: "hypot", compute: library.hypot, formula: length, ulps: 3, values: [some, nonzero] },
  {
    name: "logaddexp",
    compute: library.logaddexp,
    formula: logOfSum,
    ulps: 4,
    values: [some, some],
    magnitude: (a, b) => 8 * Math.max(Math.abs(a), Math.abs(b), 1),
  },
  { name: "xlogy", compute: library.xlogy, formula: timesLog, ulps: 4, values: [some, positive] },
  { name: "xlog1py", compute: library.xlog1py, formula: timesLog1p, ulps: 4, values: [some, { low: -0.8, high: 4 }] },
  {
    name: "copysign",
    compute: library.copysign,
    values: [nonzero, nonzero],
    formula: (a, b) => (isNegative(b) ? -Math.abs(a) : Math.abs(a)),
  },
  {
    name: "heaviside",
    compute: library.heaviside,
    formula: step,
    gradient: false,
    values: [few, some],
    dtypes: floats,
  },
];

const special = sampleOf("specials", ...pairs(specials.filter((x) => !Number.isNaN(x))));
const withNaN = sampleOf("NaN", [Number.NaN, 1, Number.NaN, 0], [1, Number.NaN, Number.NaN, Number.NaN]);

const rowOf = ({ name, compute, formula, ulps = 0, values, gradient = true, dtypes = floats, magnitude }: Row) =>
  ({
    name,
    dtypes,
    gradient,
    elementwise: true,
    accuracy: { ulps },
    compute: ([a, b]) => compute(a, b),
    // This comparison ignores the sign of a NaN.
    samples: [...binarySamples(...(values ?? [])), special, ...(name === "copysign" ? [] : [withNaN])],
    oracle: (blocks) => {
      const expected = mapped(blocks, formula as (...all: number[]) => number);
      const roundings = magnitude && mapped(blocks, magnitude as (...all: number[]) => number).values;
      return { ...expected, ...(roundings && { roundings }) };
    },
  }) satisfies OperationRow as OperationRow;

testTable("special pairs", rows.map(rowOf));

testTable("special pairs without a gradient", [
  {
    ...rowOf({ name: "nextafter", compute: library.nextafter, formula: () => 0, gradient: false }),
    oracle: (blocks) => mapped(blocks, (a, b) => nextOf(a, b, blocks[0].dtype)),
  },
  {
    ...rowOf({ name: "heaviside of integers", compute: library.heaviside, formula: step, gradient: false }),
    dtypes: [...integers, "bool"],
    samples: binarySamples(),
  },
]);

/** Finds the greatest common divisor by search. */
function greatest(a: number, b: number): number {
  const [x, y] = [Math.abs(a), Math.abs(b)];
  if (x === 0 || y === 0) return x + y;
  let divisor = Math.min(x, y);
  while (x % divisor !== 0 || y % divisor !== 0) divisor--;
  return divisor;
}
const least = (a: number, b: number) => (a === 0 || b === 0 ? 0 : Math.abs(a * b) / greatest(a, b));

testTable(
  "divisors",
  (
    [
      ["gcd", library.gcd, greatest],
      ["lcm", library.lcm, least],
    ] as const
  ).map(
    ([name, compute, formula]): OperationRow => ({
      name,
      dtypes: integers,
      gradient: false,
      accuracy: { ulps: 0 },
      compute: ([a, b]) => compute(a, b),
      samples: [
        ...binarySamples(),
        ...binarySamples({ integers: [0, 15] }, { integers: [0, 8] }),
        signs(["int64", "int32", "int8"]),
      ],
      oracle: (blocks) => mapped(blocks, formula as (...all: number[]) => number),
    }),
  ),
);

function signs(dtypes: readonly DType[]) {
  const [a, b] = pairs([-12, -7, -1, 0, 1, 8, 9]);
  const operand = (list: readonly number[]) => ({ shape: [list.length], values: { list } });
  return { name: "signs", inputs: [operand(a), operand(b)], options: undefined, dtypes };
}

describe.each(tested)("special functions of two numbers on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));
  const valuesOf = (compute: Compute, a: readonly number[], b: readonly number[], dtype: DType = "float32") =>
    on(() =>
      Array.from(compute(library.tensor([...a], { dtype }), library.tensor([...b], { dtype })).dataSync(), Number),
    );
  const { POSITIVE_INFINITY: oo, NaN: none } = Number;

  test("zeros keep their signs", () => {
    expect(valuesOf(library.copysign, [0, 1, -0, -2], [-0, -0, 1, 0])).toEqual([-0, -1, 0, 2]);
    expect(valuesOf(library.copysign, [oo, -oo], [-1, 1])).toEqual([-oo, oo]);
    expect(valuesOf(library.nextafter, [0, 0, -0, 0], [1, -1, -0, -0])).toEqual([2 ** -149, -(2 ** -149), -0, -0]);
  });

  test("nextafter steps beyond the smallest numbers and to infinity", () => {
    expect(valuesOf(library.nextafter, [2 ** -149, -(2 ** -149)], [-1, 1])).toEqual([0, -0]);
    expect(valuesOf(library.nextafter, [3.4028234663852886e38, oo], [oo, 0])).toEqual([oo, 3.4028234663852886e38]);
    expect(valuesOf(library.nextafter, [65504, 1, 1, 2], [oo, 0, 2, 0], "float16")).toEqual([
      oo,
      1 - 2 ** -11,
      1 + 2 ** -10,
      2 - 2 ** -10,
    ]);
  });

  test("infinities give the limits", () => {
    expect(valuesOf(library.hypot, [oo, none, 3e38], [none, -oo, 0])).toEqual([oo, oo, Math.fround(3e38)]);
    expect(valuesOf(library.logaddexp, [oo, -oo, -oo, oo], [oo, -oo, 1, -oo])).toEqual([oo, -oo, 1, oo]);
    expect(valuesOf(library.xlogy, [0, 0, 0, 1], [0, oo, none, 0])).toEqual([0, 0, none, -oo]);
  });

  test("the smallest integers wrap around", () => {
    const smallest = -(2 ** 31);
    expect(valuesOf(library.gcd, [smallest, smallest], [0, 12], "int32")).toEqual([smallest, 4]);
    expect(valuesOf(library.lcm, [-128], [1], "int8")).toEqual([-128]);
  });
});

test("where several gradients are valid, the result is PyTorch's", () => {
  const gradients = (compute: Compute, a: number, b: number) => {
    const operands = [a, b].map((value) => library.tensor([value], { dtype: "float64", requiresGrad: true }));
    const found = grad([compute(operands[0], operands[1])], operands, {
      gradOutputs: [library.ones([1], { dtype: "float64" })],
    });
    return found.map((gradient) => Number(gradient.dataSync()[0]));
  };
  withBackend("reference", () => {
    expect(gradients(library.hypot, 0, 0)).toEqual([Number.NaN, Number.NaN]);
    expect(gradients(library.logaddexp, Number.POSITIVE_INFINITY, 1)).toEqual([1, 0]);
    expect(gradients(library.logaddexp, Number.NEGATIVE_INFINITY, 1)).toEqual([0, 1]);
    expect(gradients(library.logaddexp, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY)).toEqual([
      Number.NaN,
      Number.NaN,
    ]);
    expect(gradients(library.xlogy, 0, 0)).toEqual([0, Number.NaN]);
    expect(gradients(library.xlogy, 0, 2)).toEqual([Math.LN2, 0]);
    expect(gradients(library.copysign, 0, -1)).toEqual([-0, 0]);
    expect(gradients(library.copysign, 3, -1)).toEqual([-1, 0]);
  });
});

test("heaviside has no gradient", () => {
  const x = library.tensor([1, 2], { requiresGrad: true });
  expect(library.heaviside(x, x).requiresGrad).toBe(false);
});

describe("gradients of the second order equal finite differences", () => {
  test.each([
    ["hypot", library.hypot],
    ["logaddexp", library.logaddexp],
    ["xlogy", library.xlogy],
    ["copysign", library.copysign],
  ] as const)("%s has gradients of the second order", (_name, compute) => {
    const gradients = (a: Tensor, b: Tensor) =>
      enableGrad(() => {
        const [first, second] = grad([library.sum(library.mul(compute(a, b), a))], [a, b], { createGraph: true });
        return library.add(first, library.mul(second, 2));
      });
    withBackend("reference", () => {
      const a = library.tensor([0.3, 1.7, 2.2], { dtype: "float64", requiresGrad: true });
      const b = library.tensor([1.1, 0.4, 2.9], { dtype: "float64", requiresGrad: true });
      gradcheck(gradients, [a, b]);
    });
  });
});
