import {
  all,
  amax,
  amin,
  any,
  argmax,
  argmin,
  logsumexp,
  max,
  mean,
  min,
  nanmax,
  nanmin,
  norm,
  prod,
  std,
  sum,
  var as variance,
  varMean,
} from "../../../src/ops/index.ts";
import { type DType, isFloat } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { repeats } from "../../support/repeats.ts";
import { testTable } from "../run.ts";
import type { OperandSpec, Values } from "../samples.ts";
import { type Expected, exactly, manyRows, type OperationRow, type Round, type Sample } from "../table.ts";
import type { Accuracy } from "../tolerance.ts";
import { axesOf, groupsOf, type Reduced, reducedShape, total } from "./groups.ts";

const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];
const integers: readonly DType[] = ["int64", "int32", "uint32", "int8", "uint8", "bool"];
const everything = [...floats, ...integers];

type Options = Reduced & { readonly p?: number; readonly correction?: number };

// Numbers of elements per result: more than a SIMD-group processes at once, more than a chunk of adjacent columns has
// (512 rows), and more than a threadgroup adds (16,384 elements). A usual run has just more than these; an exhaustive
// run has more chunks.
const ofThreadgroup = repeats({ usual: 2100, all: 2500 });
const ofColumns = repeats({ usual: 530, all: 1300 });
const ofPasses = repeats({ usual: 16_500, all: 37_000 });

/** Operands and axes: each kind of loop nest that kernels distinguish, and each layout. */
const calls: readonly (readonly [OperandSpec, Options])[] = [
  [{ shape: [] }, {}],
  [{ shape: [] }, { dim: 0 }],
  [{ shape: [1] }, { dim: 0, keepdim: true }],
  [{ shape: [7] }, {}],
  [{ shape: [3, 5] }, {}],
  [{ shape: [3, 5] }, { dim: 0 }],
  [{ shape: [3, 5] }, { dim: -1, keepdim: true }],
  [{ shape: [2, 3, 17] }, { dim: 1 }],
  [{ shape: [2, 3, 17] }, { dim: [0, 2] }],
  [{ shape: [2, 3, 17] }, { dim: [-1, 0], keepdim: true }],
  [{ shape: [2, 3, 2, 2, 3] }, { dim: [1, 3] }],
  [{ shape: [40, 70] }, { dim: 0 }],
  [{ shape: [40, 70] }, { dim: 1 }],
  [{ shape: [1031] }, {}],
  [{ shape: [manyRows, 129] }, { dim: 0, keepdim: true }],
  [{ shape: [manyRows, 129] }, { dim: 1 }],
  [{ shape: [2, ofThreadgroup] }, { dim: 1 }],
  [{ shape: [ofColumns, 9] }, { dim: 0 }],
  [{ shape: [ofPasses] }, {}],
  [{ shape: [31, 5], layout: "transposed" }, { dim: 0 }],
  [{ shape: [31, 5], layout: "transposed" }, {}],
  [{ shape: [9, 33], layout: "strided" }, { dim: 1 }],
  [{ shape: [9, 33], layout: "strided" }, { dim: 0 }],
  [{ shape: [9, 33], layout: "reversed" }, { dim: 1 }],
  [{ shape: [9, 33], layout: "reversed" }, {}],
  [{ shape: [6, 4, 8], layout: "expanded" }, { dim: 0 }],
  [{ shape: [6, 4, 8], layout: "expanded" }, { dim: [1, 2] }],
  [{ shape: [6, 4, 8], layout: "offset" }, { dim: [0, 1] }],
];
const empties: readonly (readonly [OperandSpec, Options])[] = [
  [{ shape: [0] }, {}],
  [{ shape: [2, 0, 3] }, { dim: 1 }],
  [{ shape: [2, 0] }, { dim: 0 }],
];
const special: readonly (readonly number[])[] = [
  [1, Number.NaN, 2, 3],
  [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY],
  [1, Number.POSITIVE_INFINITY, 2],
  [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1],
  [0, -0, 0],
];

/** The number of elements per result. */
const countOf = (shape: readonly number[], options: Options): number =>
  axesOf(options, shape.length).reduce((count, axis) => count * (shape[axis] ?? 1), 1);

interface Row {
  readonly compute: (x: Tensor, options: Options) => Tensor;
  /** Computes a result from its elements. */
  readonly formula: (values: readonly number[], options: Options, round: Round) => number;
  readonly dtypes?: readonly DType[];
  readonly out?: (dtype: DType) => DType;
  readonly accuracy: Accuracy;
  readonly gradient?: boolean;
  /** Whether a sample has a gradient that can be compared. Default: all do. */
  readonly gradientOf?: (spec: OperandSpec, options: Options) => boolean;
  /** Rounding errors of the gradient, for this many elements per result. */
  readonly gradientRoundings?: (count: number) => number;
  readonly allowsEmpty?: boolean;
  /** The magnitude that the error of pairwise summation is relative to. Default: the result. */
  readonly magnitude?: (values: readonly number[]) => number;
  /** Rounding errors of a result by analysis. Default: those of pairwise summation, (log₂ n + 3) of the magnitude. */
  readonly roundings?: (values: readonly number[], result: number) => number;
  /** Options other than axes. */
  readonly more?: Options;
  readonly values?: Values;
}

function row(
  name: string,
  {
    compute,
    formula,
    dtypes = floats,
    out = (dtype) => dtype,
    accuracy,
    gradient = true,
    allowsEmpty = true,
    more = {},
    magnitude = (group) => Math.abs(formula(group, more, exactly)),
    roundings = (group) => (Math.log2(group.length + 1) + 3) * magnitude(group),
    gradientOf = () => true,
    gradientRoundings = (count) => 8 + 2 * Math.log2(count + 1),
    values,
  }: Row,
): OperationRow<Options> {
  const samples: Sample<Options>[] = [...calls, ...(allowsEmpty ? empties : [])].map(([spec, options]) => ({
    inputs: [values ? { ...spec, values } : spec],
    options: { ...options, ...more },
    gradient: gradientOf(spec, { ...options, ...more }),
  }));
  for (const list of special)
    samples.push({
      name: `[${list.map((value) => (Object.is(value, -0) ? "-0" : value)).join(" ")}]`,
      inputs: [{ shape: [2, list.length], values: { list } }],
      options: { dim: 1, ...more },
      dtypes: floats,
      gradient: false,
    });
  return {
    name,
    compute: ([x], options) => compute(x, options),
    dtypes,
    samples,
    oracle: ([x], options, round) => ({
      shape: reducedShape(x, options),
      dtype: out(x.dtype),
      values: groupsOf(x, options).map((group) => formula(group, options, round)),
      roundings: groupsOf(x, options).map((group) =>
        "flash" in accuracy ? roundings(group, formula(group, options, exactly)) * sidesThatRound(x.dtype) : 0,
      ),
    }),
    accuracy,
    gradient,
    gradientRoundings: ([x], options) => gradientRoundings(countOf(x.shape, options)),
  };
}

/** For results in float64, the float64 oracle has as many rounding errors as the operation. */
const sidesThatRound = (dtype: DType): number => (dtype === "float64" ? 2 : 1);

const flash: Accuracy = { flash: true };
const exact: Accuracy = { ulps: 0 };
const int64 = (dtype: DType): DType => (isFloat(dtype) ? dtype : "int64");
const truth = (dtype: DType): DType => (dtype === "uint8" ? "uint8" : "bool");

const larger = (a: number, b: number): number => (Number.isNaN(a) || a >= b ? a : b);
const largest = (values: readonly number[]): number => values.reduce(larger);
const smallest = (values: readonly number[]): number => -largest(values.map((value) => -value));
/** The values that are not NaN; all of them if all are. */
const numbersIn = (values: readonly number[]): readonly number[] => {
  const numbers = values.filter((value) => !Number.isNaN(value));
  return numbers.length > 0 ? numbers : values;
};
const withNaN = [3, Number.NaN, -1, 2, Number.NaN, Number.NaN, 5.5, 0.5, Number.NaN, -4, 7];

function varianceOf(values: readonly number[], { correction = 1 }: Options, round: Round): number {
  if (values.length === 0) return Number.NaN;
  const average = round(total(values, round) / values.length);
  const squares = values.map((value) => round(round(value - average) ** 2));
  return round(total(squares, round) / Math.max(0, values.length - correction));
}

function logSumExpOf(values: readonly number[], _: Options, round: Round): number {
  if (values.length === 0) return Number.NEGATIVE_INFINITY;
  const top = largest(values);
  const shift = Number.isFinite(top) ? top : 0;
  return round(
    shift +
      round(
        Math.log(
          total(
            values.map((value) => round(Math.exp(round(value - shift)))),
            round,
          ),
        ),
      ),
  );
}

/**
 * With y = m + log S and S = Σ exp(x − m): exp has the error of its argument, up to m − min x, and two roundings; S
 * adds log₂ n roundings. These are relative errors of S, hence absolute errors of log S. The logarithm adds two
 * roundings of its result, and the last sum adds one.
 */
function logSumExpRoundings(values: readonly number[], result: number): number {
  if (!Number.isFinite(result)) return 0;
  const depth = largest(values) - smallest(values);
  return depth + 2 + Math.log2(values.length) + 2 * Math.abs(result - largest(values)) + Math.abs(result);
}

/** Away from 0, where norms have kinks and small powers grow without bound. */
const awayFromZero: Values = { low: 0.5, high: 2 };

function normRow(p: number, values?: Values, accuracy: Accuracy = flash, dtypes = floats): OperationRow<Options> {
  const power = (value: number, round: Round) => round(Math.abs(value) ** p);
  const formulas = new Map<number, Row["formula"]>([
    [0, (group) => group.filter((value) => value !== 0).length],
    [Number.POSITIVE_INFINITY, (group) => largest(group.map(Math.abs))],
    [Number.NEGATIVE_INFINITY, (group) => smallest(group.map(Math.abs))],
  ]);
  return row(`norm p=${p}`, {
    compute: norm,
    formula:
      formulas.get(p) ??
      ((group, _, round) =>
        round(
          total(
            group.map((value) => power(value, round)),
            round,
          ) **
            (1 / p),
        )),
    more: { p },
    dtypes,
    accuracy,
    // The roundings of the sum of powers, which the root divides by p, and two of the root itself.
    roundings: (group, result) => ((Math.log2(group.length + 1) + 3) / Math.abs(p) + 2) * result,
    allowsEmpty: Number.isFinite(p) && p >= 0,
    ...(values ? { values } : {}),
  });
}

const twiceTheVariance = (values: readonly number[]): number => 2 * varianceOf(values, { correction: 0 }, exactly);

/** Whether the gradient of a variance is more than rounding noise: two or more elements that are not all equal. */
const hasFreedom = ({ shape, layout }: OperandSpec, options: Options): boolean =>
  countOf(shape, options) > 1 && !(layout === "expanded" && axesOf(options, shape.length).includes(0));

const varianceRow = row("var", {
  compute: variance,
  formula: varianceOf,
  magnitude: twiceTheVariance,
  gradientOf: hasFreedom,
  accuracy: flash,
});
const meanRow = row("mean", {
  compute: mean,
  magnitude: (values) => total(values.map(Math.abs), exactly) / values.length,
  formula: (values, _, round) => round(total(values, round) / values.length),
  accuracy: flash,
});
const varMeanRow: OperationRow<Options> = {
  ...varianceRow,
  name: "varMean",
  compute: ([x], options) => Object.values(varMean(x, options)) as Tensor[],
  oracle: (...call) => [varianceRow, meanRow].map(({ oracle }) => oracle(...call) as Expected),
};

testTable("reductions", [
  row("sum", {
    compute: sum,
    magnitude: (values) => total(values.map(Math.abs), exactly),
    formula: (values, _, round) => total(values, round),
    dtypes: everything,
    out: int64,
    accuracy: flash,
  }),
  meanRow,
  row("prod", {
    compute: prod,
    gradientRoundings: (count) => 2 * count + 8,
    formula: (values, _, round) => values.reduce((product, value) => round(product * value), 1),
    accuracy: flash,
    roundings: (values, result) => values.length * Math.abs(result),
    // Ones that cancel, with a period that is coprime to the strides of the samples.
    values: { list: [1, -1, 2, 0.5, -1.25, 0.8, 1, 1, -1, -1.6, 0.625] },
  }),
  row("prod with zeros", {
    compute: prod,
    formula: (values) => values.reduce((product, value) => product * value, 1),
    dtypes: ["float64", "float32"],
    accuracy: flash,
    values: { list: [1, 2, -0.5, 1, 0, 0.25, 3, 1, 1, 1, 2, 1, 1] },
  }),
  row("prod of integers", {
    compute: prod,
    formula: (values) => values.reduce((product, value) => product * value, 1),
    dtypes: integers,
    out: int64,
    accuracy: exact,
    gradient: false,
    values: { list: [1, 1, 1, 0, 1, 1, 1] },
  }),
  row("amax", { compute: amax, formula: largest, dtypes: everything, accuracy: exact, allowsEmpty: false }),
  row("amin", { compute: amin, formula: smallest, dtypes: everything, accuracy: exact, allowsEmpty: false }),
  row("nanmax", {
    compute: nanmax,
    formula: (values) => largest(numbersIn(values)),
    dtypes: everything,
    accuracy: exact,
    allowsEmpty: false,
  }),
  row("nanmin", {
    compute: nanmin,
    formula: (values) => smallest(numbersIn(values)),
    dtypes: everything,
    accuracy: exact,
    allowsEmpty: false,
  }),
  ...Object.entries({ nanmax: { compute: nanmax, of: largest }, nanmin: { compute: nanmin, of: smallest } }).map(
    ([name, { compute, of }]) =>
      row(`${name} among NaN`, {
        compute,
        formula: (values) => of(numbersIn(values)),
        accuracy: exact,
        gradient: false,
        allowsEmpty: false,
        values: { list: withNaN },
      }),
  ),
  row("all", {
    compute: all,
    formula: (values) => Number(values.every((value) => value !== 0)),
    dtypes: everything,
    out: truth,
    accuracy: exact,
    gradient: false,
    values: { list: [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1] },
  }),
  row("any", {
    compute: any,
    formula: (values) => Number(values.some((value) => value !== 0)),
    dtypes: everything,
    out: truth,
    accuracy: exact,
    gradient: false,
    values: { list: [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0] },
  }),
  varianceRow,
  varMeanRow,
  row("var of the population", {
    compute: variance,
    formula: varianceOf,
    magnitude: twiceTheVariance,
    gradientOf: hasFreedom,
    accuracy: flash,
    more: { correction: 0 },
  }),
  row("std", {
    compute: std,
    magnitude: (values) => 2 * Math.sqrt(varianceOf(values, { correction: 0 }, exactly)),
    gradientOf: hasFreedom,
    formula: (values, options, round) => round(Math.sqrt(varianceOf(values, options, round))),
    accuracy: flash,
  }),
  row("logsumexp", {
    compute: logsumexp,
    formula: logSumExpOf,
    roundings: logSumExpRoundings,
    accuracy: flash,
  }),
  normRow(2),
  normRow(1),
  normRow(0, undefined, exact),
  normRow(Number.POSITIVE_INFINITY, undefined, exact),
  normRow(Number.NEGATIVE_INFINITY, undefined, exact),
  normRow(3, awayFromZero),
  normRow(-1, awayFromZero),
  normRow(0.5, awayFromZero, flash, ["float64", "float32", "bfloat16"]),
]);

/** The first of the best elements; a NaN is best. */
function bestIndex(values: readonly number[], sign: 1 | -1): number {
  const nan = values.findIndex(Number.isNaN);
  return nan >= 0 ? nan : values.reduce((best, value, at) => (sign * value > sign * values[best] ? at : best), 0);
}

const alongOne = calls.filter(([, { dim }]) => typeof dim === "number");
const ties: Values = { integers: [0, 3] };

function indexedRow(
  name: string,
  compute: OperationRow<Options>["compute"],
  sign: 1 | -1,
  hasValues: boolean,
): OperationRow<Options> {
  const samples: Sample<Options>[] = alongOne.flatMap(([spec, options]) => [
    { inputs: [spec], options },
    { name: `ties [${spec.shape}]`, inputs: [{ ...spec, values: ties }], options, gradient: false },
  ]);
  for (const list of special)
    samples.push({
      name: `[${list.join(" ")}]`,
      inputs: [{ shape: [2, list.length], values: { list } }],
      options: { dim: 1 },
      dtypes: floats,
      gradient: false,
    });
  samples.push({ inputs: [{ shape: [2, 0] }], options: { dim: 0 } });
  return {
    name,
    compute,
    dtypes: hasValues ? everything : everything.filter((dtype) => dtype !== "bool"),
    samples,
    oracle: ([x], options) => {
      const groups = groupsOf(x, options);
      const found = groups.map((group) => bestIndex(group, sign));
      const shape = reducedShape(x, options);
      const indices = { shape, dtype: "int64" as const, values: found };
      return hasValues ? [{ shape, values: groups.map((group, at) => group[found[at]]) }, indices] : indices;
    },
    accuracy: exact,
    gradient: hasValues,
  };
}

type Along = { readonly dim: number };
testTable("reductions with an index", [
  indexedRow("max along", ([x], options) => Object.values(max(x, options as Along)) as Tensor[], 1, true),
  indexedRow("min along", ([x], options) => Object.values(min(x, options as Along)) as Tensor[], -1, true),
  indexedRow("argmax", ([x], options) => argmax(x, options as Along), 1, false),
  indexedRow("argmin", ([x], options) => argmin(x, options as Along), -1, false),
]);
