/** Operations on pairs of elements, broadcast, on every backend. */
import * as library from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { testTable } from "../run.ts";
import { rounder, type Values } from "../samples.ts";
import type { OperationRow, Sample } from "../table.ts";
import { binarySamples, floats, integers, mapped, pairs, sampleOf, specials } from "./oracle.ts";

type Compute = (a: Tensor, b: Tensor) => Tensor;

interface Row {
  readonly name: string;
  readonly compute: Compute;
  /** The definition, in float64; exact for small integers. */
  readonly formula: (a: number, b: number) => number;
  readonly ulps?: number;
  readonly dtypes?: readonly DType[];
  readonly samples?: readonly Sample[];
  readonly gradient?: boolean;
}

const awayFromZero: Values = { list: [0.7, -1.3, 2.4, -0.6, 1.9, -3.1, 1.1] };
const divisors: Values = { integers: [1, 7] };
const byNumbers: readonly Sample[] = binarySamples({ low: -9, high: 9 }, awayFromZero);
const special = sampleOf("specials", ...pairs(specials));

const floorRemainder = (a: number, b: number) => {
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
};
// Computed from the remainder, since a/b may be rounded up to a whole number.
const floorQuotient = (a: number, b: number) => {
  if (b === 0) return a / b;
  const rest = a % b;
  return Math.round((a - rest) / b) - (rest !== 0 && rest < 0 !== b < 0 ? 1 : 0);
};
const power = (a: number, b: number) => (a === 1 || (a === -1 && Math.abs(b) === 1 / 0) ? 1 : a ** b);

const integerPower = (a: number, b: number) => (b >= 0 || Math.abs(a) === 1 ? a ** b : 0);

const rows: readonly Row[] = [
  { name: "add", compute: library.add, formula: (a, b) => a + b, dtypes: [...floats, ...integers] },
  { name: "sub", compute: library.sub, formula: (a, b) => a - b, dtypes: [...floats, ...integers] },
  { name: "mul", compute: library.mul, formula: (a, b) => a * b, dtypes: [...floats, ...integers] },
  { name: "div", compute: library.div, formula: (a, b) => a / b, ulps: 1, samples: byNumbers },
  { name: "floorDivide", compute: library.floorDivide, formula: floorQuotient, samples: byNumbers },
  { name: "fmod", compute: library.fmod, formula: (a, b) => a % b, samples: byNumbers },
  { name: "remainder", compute: library.remainder, formula: floorRemainder, ulps: 1, samples: byNumbers },
  {
    name: "div trunc",
    compute: (a, b) => library.div(a, b, { roundingMode: "trunc" }),
    formula: (a, b) => Math.trunc(a / b),
    samples: byNumbers,
  },
  {
    name: "pow",
    compute: library.pow,
    formula: power,
    ulps: 16,
    samples: binarySamples({ low: 0.1, high: 3 }, { low: -3, high: 3 }),
  },
  { name: "maximum", compute: library.maximum, formula: Math.max, dtypes: [...floats, ...integers, "bool"] },
  { name: "minimum", compute: library.minimum, formula: Math.min, dtypes: [...floats, ...integers, "bool"] },
  { name: "atan2", compute: library.atan2, formula: Math.atan2, ulps: 6, samples: byNumbers },
];

testTable(
  "binary",
  rows.map(
    ({ name, compute, formula, ulps = 0.1, dtypes = floats, samples = binarySamples() }): OperationRow => ({
      name,
      compute: ([a, b]) => compute(a, b),
      dtypes,
      samples: [...samples, special],
      oracle: (blocks) => wrapped(mapped(blocks, formula as (...values: number[]) => number), blocks[0].dtype),
      accuracy: { ulps },
      elementwise: true,
      gradient: true,
    }),
  ),
);

/** Integers wrap around. */
function wrapped(expected: ReturnType<typeof mapped>, dtype: DType): ReturnType<typeof mapped> {
  if (floats.includes(dtype) || dtype === "bool") return expected;
  const wrap = rounderOfIntegers(dtype);
  return { ...expected, values: expected.values.map(wrap) };
}

function rounderOfIntegers(dtype: DType): (value: number) => number {
  const bits = { int64: 64, int32: 32, uint32: 32, int8: 8, uint8: 8 }[dtype as "int8"];
  const as = dtype.startsWith("u") ? BigInt.asUintN : BigInt.asIntN;
  return (value) => Number(as(bits, BigInt(value)));
}

testTable(
  "divisions of integers",
  (
    [
      ["floorDivide", library.floorDivide, (a, b) => Math.floor(a / b)],
      ["div trunc", (a, b) => library.div(a, b, { roundingMode: "trunc" }), (a, b) => Math.trunc(a / b)],
      ["remainder", library.remainder, floorRemainder],
      ["fmod", library.fmod, (a, b) => a % b],
      ["pow", library.pow, integerPower],
    ] as readonly [string, Compute, (a: number, b: number) => number][]
  ).map(
    ([name, compute, formula]): OperationRow => ({
      name: `${name} of integers`,
      compute: ([a, b]) => compute(a, b),
      dtypes: integers,
      samples: [...binarySamples(undefined, divisors), negativeDivisors(["int64", "int32", "int8"])],
      oracle: (blocks) =>
        wrapped(
          mapped(blocks, (a, b) => Math.trunc(formula(a, b)) + 0),
          blocks[0].dtype,
        ),
      accuracy: { ulps: 0 },
      gradient: false,
    }),
  ),
);

function negativeDivisors(dtypes: readonly DType[]): Sample {
  const [a, b] = pairs([-128, -7, -3, -1, 0, 1, 3, 7, 127], [-3, -1, 1, 3]);
  const operand = (list: readonly number[]) => ({ shape: [list.length], values: { list } });
  return { name: "signs", inputs: [operand(a), operand(b)], options: undefined, dtypes };
}

const everything: readonly DType[] = [...floats, ...integers, "bool"];
const predicate = (name: string, compute: Compute, formula: (a: number, b: number) => boolean): OperationRow => ({
  name,
  compute: ([a, b]) => compute(a, b),
  dtypes: everything,
  samples: [...binarySamples({ integers: [0, 2] }), special],
  oracle: (blocks) => mapped(blocks, (a, b) => Number(formula(a, b)), "bool"),
  accuracy: { ulps: 0 },
  gradient: false,
});

testTable("comparisons", [
  predicate("eq", library.eq, (a, b) => a === b),
  predicate("ne", library.ne, (a, b) => a !== b),
  predicate("lt", library.lt, (a, b) => a < b),
  predicate("le", library.le, (a, b) => a <= b),
  predicate("gt", library.gt, (a, b) => a > b),
  predicate("ge", library.ge, (a, b) => a >= b),
  predicate("logicalAnd", library.logicalAnd, (a, b) => a !== 0 && b !== 0),
  predicate("logicalOr", library.logicalOr, (a, b) => a !== 0 || b !== 0),
  predicate("logicalXor", library.logicalXor, (a, b) => (a !== 0) !== (b !== 0)),
]);

const bitwise = (name: string, compute: Compute, formula: (a: bigint, b: bigint) => bigint) => ({
  name,
  compute: ([a, b]: readonly Tensor[]) => compute(a, b),
  dtypes: [...integers, "bool"] as const,
  samples: binarySamples(),
  oracle: (blocks: Parameters<OperationRow["oracle"]>[0]) =>
    mapped(blocks, (a, b) => rounder(blocks[0].dtype)(Number(formula(BigInt(a), BigInt(b))))),
  accuracy: { ulps: 0 },
  gradient: false,
});

const ofBools = (name: string, compute: Compute, formula: (a: number, b: number) => boolean): OperationRow => ({
  ...predicate(name, compute, formula),
  name: `${name} of bools`,
  dtypes: ["bool"],
  samples: binarySamples(),
});

testTable("bits", [
  bitwise("bitwiseAnd", library.bitwiseAnd, (a, b) => a & b),
  bitwise("bitwiseOr", library.bitwiseOr, (a, b) => a | b),
  bitwise("bitwiseXor", library.bitwiseXor, (a, b) => a ^ b),
  ofBools("add", library.add, (a, b) => a !== 0 || b !== 0),
  ofBools("mul", library.mul, (a, b) => a !== 0 && b !== 0),
]);
