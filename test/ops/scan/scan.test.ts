import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { cumprod, cumsum, tensor } from "../../../src/ops/index.ts";
import { type DType, isFloat } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { mapSlices } from "../reduction/groups.ts";
import { tested, testTable } from "../run.ts";
import type { OperandSpec, Values } from "../samples.ts";
import { exactly, type OperationRow, type Round, type Sample } from "../table.ts";

const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];
const integers: readonly DType[] = ["int64", "int32", "uint32", "int8", "uint8", "bool"];

interface Along {
  readonly dim: number;
}

/** Dense and interleaved slices, shorter and longer than kernels process at once, in each layout. */
const calls: readonly (readonly [OperandSpec, Along])[] = [
  [{ shape: [] }, { dim: 0 }],
  [{ shape: [1] }, { dim: -1 }],
  [{ shape: [7] }, { dim: 0 }],
  [{ shape: [0] }, { dim: 0 }],
  [{ shape: [2, 0, 3] }, { dim: 1 }],
  [{ shape: [2, 0, 3] }, { dim: 2 }],
  [{ shape: [3, 5] }, { dim: 0 }],
  [{ shape: [3, 5] }, { dim: -1 }],
  [{ shape: [2, 3, 17] }, { dim: 1 }],
  [{ shape: [2, 3, 17] }, { dim: -3 }],
  [{ shape: [1031] }, { dim: 0 }],
  [{ shape: [5, 300] }, { dim: 1 }],
  [{ shape: [40, 270] }, { dim: 0 }],
  [{ shape: [31, 5], layout: "transposed" }, { dim: 0 }],
  [{ shape: [31, 5], layout: "transposed" }, { dim: 1 }],
  [{ shape: [9, 33], layout: "strided" }, { dim: 1 }],
  [{ shape: [9, 70], layout: "reversed" }, { dim: 1 }],
  [{ shape: [9, 72], layout: "reversed" }, { dim: 1 }],
  [{ shape: [9, 33], layout: "reversed" }, { dim: 0 }],
  [{ shape: [6, 4, 8], layout: "expanded" }, { dim: 0 }],
  [{ shape: [6, 4, 8], layout: "offset" }, { dim: 1 }],
];
/** Slices that the cpu backend divides among threads: two parts and a few elements, scanned forward and back. */
const long: readonly (readonly [OperandSpec, Along])[] = [
  [{ shape: [70003] }, { dim: 0 }],
  [{ shape: [2, 66000] }, { dim: 1 }],
];
const special: readonly (readonly number[])[] = [
  [1, Number.NaN, 2, 3],
  [1, Number.POSITIVE_INFINITY, 2],
  [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1],
  [2, 0, 3, 0],
];

type Step = (carried: number, value: number) => number;
/** Compensated for the oracle (Neumaier, 1974). */
function runningSum(slice: readonly number[], round: Round): number[] {
  let [sum, lost] = [0, 0];
  return slice.map((value) => {
    const next = round(sum + value);
    if (round === exactly && Number.isFinite(next))
      lost += Math.abs(sum) >= Math.abs(value) ? sum - next + value : value - next + sum;
    sum = next;
    return sum + lost;
  });
}

function running(slice: readonly number[], first: number, step: Step): number[] {
  let carried = first;
  return slice.map((value) => {
    carried = step(carried, value);
    return carried;
  });
}

interface Row {
  readonly compute: typeof cumsum;
  readonly dtypes: readonly DType[];
  readonly formula: (slice: readonly number[], round: Round) => number[];
  /** Rounding errors of each element. */
  readonly roundings: (slice: readonly number[], dtype: DType) => number[];
  readonly values?: Values;
  readonly extra?: readonly (readonly [OperandSpec, Along])[];
}

function row(name: string, { compute, dtypes, formula, roundings, values, extra = [] }: Row): OperationRow<Along> {
  const samples: Sample<Along>[] = [...calls, ...extra].map(([spec, options]) => ({
    inputs: [values ? { ...spec, values } : spec],
    options,
    gradient: !extra.some(([own]) => own === spec) || dtypes.length === 1,
  }));
  for (const list of special)
    samples.push({
      name: `[${list.join(" ")}]`,
      inputs: [{ shape: [2, list.length], values: { list } }],
      options: { dim: 1 },
      dtypes: floats,
      gradient: false,
    });
  return {
    name,
    compute: ([x], options) => compute(x as Tensor, options),
    dtypes,
    samples,
    oracle: ([x], { dim }, round) => ({
      shape: x.shape,
      dtype: isFloat(x.dtype) ? x.dtype : "int64",
      values: mapSlices(x.shape, [x.values], dim, (slice) => formula(slice, round)),
      roundings: mapSlices(x.shape, [x.values], dim, (slice) => roundings(slice, x.dtype)),
    }),
    accuracy: { flash: true },
    gradient: dtypes.includes("float64"),
    gradientRoundings: ([x], { dim }) => 4 * (x.shape.at(dim) ?? 1) + 8,
  };
}

/**
 * Relative to the sum of the magnitudes so far. Float64 is added sequentially: 2 √n (Higham and Mary, "A New Approach
 * to Probabilistic Rounding Error Analysis", 2019). Narrower dtypes lose no more than a tree would, log₂ n + 2.
 */
const sumRoundings = (slice: readonly number[], dtype: DType): number[] =>
  running(slice.map(Math.abs), 0, (sum, value) => sum + value).map(
    (magnitude, k) => (dtype === "float64" ? 2 * Math.sqrt(k + 1) : Math.log2(k + 1) + 2) * magnitude,
  );
/** The errors of products, which grow with each factor. */
const productRoundings = (slice: readonly number[]): number[] =>
  running(slice, 1, (product, value) => product * value).map((product, k) => 2 * (k + 1) * Math.abs(product));

/** Products that neither grow nor vanish. */
const cancelling: Values = { list: [1, -1, 2, 0.5, -1.25, 0.8, 1, 1, -1, -1.6, 0.625] };
const product = (slice: readonly number[], round: Round): number[] => running(slice, 1, (p, value) => round(p * value));

testTable("scans", [
  row("cumsum", {
    compute: cumsum,
    dtypes: [...floats, ...integers],
    formula: runningSum,
    roundings: sumRoundings,
    extra: long,
  }),
  row("cumprod", {
    compute: cumprod,
    dtypes: floats,
    formula: product,
    roundings: productRoundings,
    values: cancelling,
  }),
  row("cumprod with zeros", {
    compute: cumprod,
    dtypes: ["float64", "float32"],
    formula: product,
    roundings: productRoundings,
    values: { list: [1, 2, -0.5, 1, 0, 0.25, 3, 1, 1, 0, 2, 1, 1] },
  }),
  row("cumprod of integers", {
    compute: cumprod,
    dtypes: integers,
    formula: product,
    roundings: () => [],
    values: { list: [1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1] },
    extra: long,
  }),
]);

// Whole numbers, so that every order of summation gives the same. Reversed: the gradient is the sum from the last
// element on.
describe.each(tested)("sums from both ends on %s", (backend) => {
  test.each([64, 72, 1024, 1032, 2049, 3072])("sums of %i elements are the same from both ends", (length) => {
    withBackend(backend, () => {
      const values = Array.from({ length: 2 * length }, (_, at) => ((at * 37) % 19) - 9);
      const x = tensor(values, { shape: [2, length], dtype: "float32", requiresGrad: true });
      const y = cumsum(x, 1);
      const [gradient] = grad([y], [x], { gradOutputs: [tensor(values, { shape: [2, length], dtype: "float32" })] });
      const rows = [values.slice(0, length), values.slice(length)];
      const sumsOf = (row: readonly number[]) => running(row, 0, (sum, value) => sum + value);
      expect(Array.from(y.dataSync() as Float32Array)).toEqual(rows.flatMap(sumsOf));
      const fromLast = rows.flatMap((row) => sumsOf(row.toReversed()).toReversed());
      expect(Array.from(gradient.dataSync() as Float32Array)).toEqual(fromLast);
    });
  });
});
