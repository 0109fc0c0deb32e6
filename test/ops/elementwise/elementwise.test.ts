/** Unary operations on every backend. */
import * as library from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { testTable } from "../run.ts";
import type { Values } from "../samples.ts";
import type { OperationRow } from "../table.ts";
import { erf, floats, integers, mapped, sampleOf, signed, specials, toEven, unarySamples } from "./oracle.ts";

interface Row {
  readonly name: string;
  readonly compute: (x: Tensor) => Tensor;
  /** The definition, in float64. */
  readonly formula: (x: number) => number;
  /** Default 0: exact. */
  readonly ulps?: number;
  /** Dtypes that the operation accepts besides floats. */
  readonly alsoOf?: readonly DType[];
  readonly values?: Values;
  /** A bound of the rounding error of the gradient, in roundings, from an analysis of its formula. */
  readonly gradientRoundings?: (x: number) => number;
}

/**
 * The gradient 1 − y² is computed from the stored y. If y is off by δ, the gradient is off by 2yδ: relative to 1 − y²
 * that grows without bound. An ulp of y is at most two roundings of y.
 */
function tanhGradientRoundings(x: number): number {
  const y = Math.tanh(x);
  return (2 * (2 * (TANH_ULPS + 0.5)) * y * y) / (1 - y * y);
}

const TANH_ULPS = 5;
const positive = { low: 0.05, high: 4 } as const;
const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

const rows: readonly Row[] = [
  { name: "neg", compute: library.neg, formula: (x) => -x, alsoOf: signed },
  { name: "abs", compute: library.abs, formula: Math.abs, alsoOf: integers },
  { name: "sign", compute: library.sign, formula: (x) => Math.sign(x) || 0, alsoOf: [...integers, "bool"] },
  { name: "square", compute: library.square, formula: (x) => x * x, ulps: 0.1, alsoOf: integers },
  { name: "relu", compute: library.relu, formula: (x) => Math.max(x, 0), alsoOf: integers },
  { name: "floor", compute: library.floor, formula: Math.floor, alsoOf: integers },
  { name: "ceil", compute: library.ceil, formula: Math.ceil, alsoOf: integers },
  { name: "round", compute: library.round, formula: toEven, alsoOf: integers },
  { name: "trunc", compute: library.trunc, formula: Math.trunc, alsoOf: integers },
  { name: "frac", compute: library.frac, formula: (x) => x - Math.trunc(x), alsoOf: integers },
  { name: "reciprocal", compute: library.reciprocal, formula: (x) => 1 / x, ulps: 1, values: positive },
  { name: "sqrt", compute: library.sqrt, formula: Math.sqrt, ulps: 1, values: positive },
  { name: "rsqrt", compute: library.rsqrt, formula: (x) => 1 / Math.sqrt(x), ulps: 2, values: positive },
  { name: "exp", compute: library.exp, formula: Math.exp, ulps: 4 },
  { name: "exp2", compute: library.exp2, formula: (x) => 2 ** x, ulps: 4 },
  { name: "expm1", compute: library.expm1, formula: Math.expm1, ulps: 4 },
  { name: "log", compute: library.log, formula: Math.log, ulps: 4, values: positive },
  { name: "log2", compute: library.log2, formula: Math.log2, ulps: 4, values: positive },
  { name: "log10", compute: library.log10, formula: Math.log10, ulps: 4, values: positive },
  { name: "log1p", compute: library.log1p, formula: Math.log1p, ulps: 4, values: { low: -0.9, high: 4 } },
  {
    name: "tanh",
    compute: library.tanh,
    formula: Math.tanh,
    ulps: TANH_ULPS,
    gradientRoundings: tanhGradientRoundings,
  },
  { name: "sigmoid", compute: library.sigmoid, formula: sigmoid, ulps: 4 },
  { name: "erf", compute: library.erf, formula: erf, ulps: 4 },
  { name: "sin", compute: library.sin, formula: Math.sin, ulps: 4 },
  { name: "cos", compute: library.cos, formula: Math.cos, ulps: 4 },
  { name: "tan", compute: library.tan, formula: Math.tan, ulps: 6, values: { low: -1.4, high: 1.4 } },
];

const rowOf = ({ name, compute, formula, ulps = 0, alsoOf = [], values, ...row }: Row): OperationRow => ({
  name,
  compute: ([x]) => compute(x),
  dtypes: [...floats, ...alsoOf],
  samples: [...unarySamples(values), sampleOf("specials", specials)],
  oracle: (blocks) => mapped(blocks, formula),
  accuracy: { ulps },
  gradient: true,
  ...(row.gradientRoundings && { gradientRoundings: ([x]) => [x.values.map(row.gradientRoundings!)] }),
});

testTable("unary", rows.map(rowOf));

testTable(
  "functions of real numbers take integers as float32",
  rows
    .filter(({ ulps = 0, name }) => ulps >= 1 && name !== "erf")
    .map((row) => ({
      ...rowOf(row),
      name: `${row.name} of integers`,
      dtypes: ["int32", "uint8", "bool"],
      samples: [{ inputs: [{ shape: [3, 5], values: { integers: [0, 3] } }], options: undefined }],
      oracle: (blocks) => mapped(blocks, row.formula, "float32"),
      gradient: false,
    })),
);

const predicate = (name: string, compute: (x: Tensor) => Tensor, formula: (x: number) => boolean): OperationRow => ({
  name,
  compute: ([x]) => compute(x),
  dtypes: [...floats, ...integers, "bool"],
  samples: [...unarySamples({ integers: [0, 2] }), sampleOf("specials", specials)],
  oracle: (blocks) => mapped(blocks, (x) => Number(formula(x)), "bool"),
  accuracy: { ulps: 0 },
  gradient: false,
});

testTable("predicates", [
  predicate("logicalNot", library.logicalNot, (x) => x === 0),
  predicate("isnan", library.isnan, Number.isNaN),
  predicate("isinf", library.isinf, (x) => x === 1 / 0 || x === -1 / 0),
  predicate("isfinite", library.isfinite, Number.isFinite),
  predicate("signbit", library.signbit, (x) => x < 0 || Object.is(x, -0)),
  {
    ...predicate("bitwiseNot", library.bitwiseNot, (x) => x === 0),
    dtypes: ["int64", "int32", "int8"],
    samples: unarySamples(),
    oracle: (blocks) => mapped(blocks, (x) => -1 - x),
  },
  {
    ...predicate("bitwiseNot", library.bitwiseNot, (x) => x === 0),
    name: "bitwiseNot of bools",
    dtypes: ["bool"],
    samples: unarySamples(),
  },
]);
