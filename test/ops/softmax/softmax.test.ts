import { logSoftmax, softmax } from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { mapSlices, total } from "../reduction/groups.ts";
import { testTable } from "../run.ts";
import type { OperandSpec } from "../samples.ts";
import { exactly, type OperationRow, type Round, type Sample } from "../table.ts";

const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];

interface Along {
  readonly dim?: number;
}

/** Dense and interleaved slices, shorter and longer than threads hold, in each layout. */
const calls: readonly (readonly [OperandSpec, Along])[] = [
  [{ shape: [] }, {}],
  [{ shape: [] }, { dim: 0 }],
  [{ shape: [1] }, {}],
  [{ shape: [7] }, { dim: 0 }],
  [{ shape: [0] }, { dim: 0 }],
  [{ shape: [2, 0, 3] }, { dim: 1 }],
  [{ shape: [2, 0, 3] }, { dim: 2 }],
  [{ shape: [3, 5] }, {}],
  [{ shape: [3, 5] }, { dim: 0 }],
  [{ shape: [2, 3, 17] }, { dim: 1 }],
  [{ shape: [2, 3, 17] }, { dim: -3 }],
  [{ shape: [2, 1031] }, { dim: 1 }],
  [{ shape: [4100] }, {}],
  [{ shape: [13, 300] }, { dim: 0 }],
  [{ shape: [140, 37] }, { dim: 0 }],
  [{ shape: [31, 5], layout: "transposed" }, { dim: 0 }],
  [{ shape: [31, 5], layout: "transposed" }, { dim: 1 }],
  [{ shape: [9, 33], layout: "strided" }, { dim: 1 }],
  [{ shape: [9, 33], layout: "reversed" }, { dim: 1 }],
  [{ shape: [9, 33], layout: "reversed" }, { dim: 0 }],
  [{ shape: [6, 4, 8], layout: "expanded" }, { dim: 0 }],
  [{ shape: [6, 4, 8], layout: "offset" }, { dim: 1 }],
];
/** Divided among threads on the cpu. */
const long: readonly (readonly [OperandSpec, Along])[] = [[{ shape: [140000] }, { dim: 0 }]];
const special: readonly (readonly number[])[] = [
  [1, Number.NaN, 2, 3],
  [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY],
  [1, Number.NEGATIVE_INFINITY, 2],
  [1, Number.POSITIVE_INFINITY, 2],
  [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1],
  [1000, 1001, -1000],
  [-30000, -30001, -30000],
];

type Formula = (slice: readonly number[], round: Round) => number[];

/** Returns x − m, the logarithm of the sum of the exponentials, and the exponentials. */
function parts(slice: readonly number[], round: Round) {
  const top = slice.reduce((most, value) => (Number.isNaN(most) || most >= value ? most : value), -Infinity);
  const shifted = slice.map((value) => round(value - top));
  const exponentials = shifted.map((value) => round(Math.exp(value)));
  return { shifted, exponentials, sum: total(exponentials, round) };
}

const softmaxOf: Formula = (slice, round) => {
  const { exponentials, sum } = parts(slice, round);
  return exponentials.map((value) => round(value / sum));
};
const logSoftmaxOf: Formula = (slice, round) => {
  const { shifted, sum } = parts(slice, round);
  const logarithm = round(Math.log(sum));
  return shifted.map((value) => round(value - logarithm));
};

/** The relative error of a sum of exponentials, in roundings: of the arguments, of exp (2), and of the summation. */
const sumRoundings = ({ shifted }: ReturnType<typeof parts>): number =>
  shifted.reduce((most, value) => Math.max(most, -value * Math.exp(value)), 0) + 2 + Math.log2(shifted.length);

/** An exponential also has the error of its argument. The sum adds its errors, and the quotient adds two roundings. */
const softmaxRoundings = (slice: readonly number[]): number[] => {
  const own = parts(slice, exactly);
  const ofSum = sumRoundings(own);
  return own.shifted.map((value, k) => (Math.abs(value) + 2 + ofSum + 2) * (own.exponentials[k] / own.sum));
};
/**
 * Roundings of x − largest, of the sum (its relative error is an absolute error of the logarithm), of the logarithm
 * (two), and of the final subtraction.
 */
const logSoftmaxRoundings = (slice: readonly number[]): number[] => {
  const own = parts(slice, exactly);
  const logarithm = Math.log(own.sum);
  const ofSum = sumRoundings(own) + 2 * logarithm;
  return own.shifted.map((value) => Math.abs(value) + ofSum + Math.abs(value - logarithm));
};

function row(
  name: string,
  compute: typeof softmax,
  formula: Formula,
  roundings: (slice: readonly number[]) => number[],
): OperationRow<Along> {
  const samples: Sample<Along>[] = [
    ...calls.map(([spec, options]) => ({ inputs: [spec], options })),
    ...long.map(([spec, options]) => ({ inputs: [spec], options, gradient: false })),
    ...special.map((list) => ({
      name: `[${list.join(" ")}]`,
      inputs: [{ shape: [2, list.length], values: { list } }],
      options: { dim: 1 },
      gradient: false,
    })),
  ];
  return {
    name,
    compute: ([x], options) => compute(x as Tensor, options),
    dtypes: floats,
    samples,
    oracle: ([x], { dim = -1 }, round) => {
      // the oracle is float64 too, so it adds as many rounding errors again
      const sides = x.dtype === "float64" ? 2 : 1;
      return {
        shape: x.shape,
        values: mapSlices(x.shape, [x.values], dim, (slice) => formula(slice, round)),
        roundings: mapSlices(x.shape, [x.values], dim, (slice) => roundings(slice).map((count) => count * sides)),
      };
    },
    accuracy: { flash: true },
    gradient: true,
    // y (g − Σ g y), in which the sum may cancel. g is at most 2, and the largest gradient is about a tenth of g.
    gradientRoundings: ([x], { dim = -1 }) => 8 * (8 + Math.log2((x.shape.at(dim) ?? 1) + 1)),
  };
}

testTable("softmax", [
  row("softmax", softmax, softmaxOf, softmaxRoundings),
  row("logSoftmax", logSoftmax, logSoftmaxOf, logSoftmaxRoundings),
]);
