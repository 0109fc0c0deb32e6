/**
 * layerNorm, rmsNorm, addLayerNorm and addRmsNorm: every backend compared with the formulas in float64, short and long
 * rows in each layout.
 */
import { addLayerNorm, addRmsNorm, layerNorm, rmsNorm } from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { total } from "../reduction/groups.ts";
import { testTable } from "../run.ts";
import { type Block, type Layout, type OperandSpec, rounder } from "../samples.ts";
import { exactly, type OperationRow, type Round, type Sample } from "../table.ts";

const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];
const halves: readonly DType[] = ["float16", "bfloat16"];

type OperandName = "x" | "residual" | "weight" | "bias";

interface Options {
  /** The roles of the inputs, in their order. */
  readonly names: readonly OperandName[];
  readonly eps?: number;
  readonly normalizedShape?: readonly number[];
}

type Specs = { readonly [Name in OperandName]?: OperandSpec };

const sampleOf = (specs: Specs, rest: Partial<Sample<Options>> & { readonly own?: Partial<Options> } = {}) => {
  const { own, ...more } = rest;
  const names = Object.keys(specs) as OperandName[];
  return { ...more, inputs: Object.values(specs), options: { names, ...own } } satisfies Sample<Options>;
};

const named = <Value>({ names }: Options, values: readonly Value[]): Partial<Record<OperandName, Value>> =>
  Object.fromEntries(names.map((name, at) => [name, values[at]!]));

// ---------------------------------------------------------------- the formulas

interface Row {
  readonly values: number[];
  /** The error bound of each value: see {@link roundingsOf}. */
  readonly roundings: number[];
}

/** One row of `out`. */
function normalized(
  row: readonly number[],
  { isCentered, eps, weight, bias }: Normalization,
  round: Round,
  sides: number,
): Row {
  const mean = isCentered ? round(total(row, round) / row.length) : 0;
  const centered = row.map((value) => round(value - mean));
  const squares = centered.map((value) => round(value * value));
  const variance = round(total(squares, round) / row.length);
  const scale = round(1 / Math.sqrt(round(variance + eps)));
  const scaled = centered.map((value, k) => round(round(value * scale) * (weight?.[k] ?? 1)));
  const magnitude = isCentered ? (total(row.map(Math.abs), exactly) / row.length) * scale : 0;
  return {
    values: scaled.map((value, k) => round(value + (bias?.[k] ?? 0))),
    roundings: scaled.map((value, k) => {
      const ofMean = magnitude * Math.abs(weight?.[k] ?? 1);
      const ofScale = Math.log2(row.length) + 6;
      return sides * (ofScale * (ofMean + Math.abs(value)) + Math.abs(bias?.[k] ?? 0));
    }),
  };
}

interface Normalization {
  readonly isCentered: boolean;
  readonly eps: number;
  readonly weight: readonly number[] | undefined;
  readonly bias: readonly number[] | undefined;
}

/** `out`, and `sum` if there is a residual: the norm of the rounded sum is computed. */
function oracle(inputs: readonly Block[], options: Options, round: Round, isCentered: boolean, eps: number) {
  const { x, residual, weight, bias } = named(options, inputs) as { x: Block } & Partial<Record<OperandName, Block>>;
  const length = (options.normalizedShape ?? x.shape.slice(-1)).reduce((product, size) => product * size, 1);
  const stored = rounder(x.dtype);
  const s = residual ? x.values.map((value, at) => stored(value + residual.values[at])) : x.values;
  const what = { isCentered, eps: options.eps ?? eps, weight: weight?.values, bias: bias?.values };
  const rows = Array.from({ length: length === 0 ? 0 : s.length / length }, (_, row) =>
    normalized(s.slice(row * length, (row + 1) * length), what, round, x.dtype === "float64" ? 2 : 1),
  );
  const out = {
    shape: x.shape,
    values: rows.flatMap(({ values }) => values),
    roundings: rows.flatMap(({ roundings }) => roundings),
  };
  return residual ? [out, { shape: x.shape, values: s }] : [out];
}

// ---------------------------------------------------------------- the calls

/**
 * One number, no rows, rows that fit a SIMD-group, rows that fit a threadgroup, longer rows, and more rows than chunks.
 */
const shapes: readonly (readonly number[])[] = [
  [1],
  [7],
  [0, 5],
  [2, 0],
  [4, 1],
  [3, 5],
  [2, 3, 17],
  [5, 513],
  [5, 4100],
  [2100, 2],
];
const layouts: readonly Layout[] = ["offset", "transposed", "strided", "reversed", "expanded"];
const special: readonly (readonly number[])[] = [
  [Number.NaN, 1, 2, 3, 0.5, -1, 1.5, 2],
  [Number.POSITIVE_INFINITY, 1, 2, 3, 0.5, -1, 1.5, 2],
  [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2, 3, 0.5, -1, 1.5, 2],
  [0, 0, 0, 0, 3, 3, 3, 3],
];

const vectorOf = (shape: readonly number[], more: Partial<OperandSpec> = {}): OperandSpec => ({
  shape: shape.slice(-1),
  ...more,
});

/** Normalized rows of one or two elements are almost only signs, and their gradients cancel, unless eps is large. */
const epsFor = (shape: readonly number[]): Partial<Options> => (shape.at(-1)! <= 2 ? { eps: 0.5 } : {});

/** Operands of a shape, x in one layout, the residual in another, weight and bias in a third. */
function operandsOf(has: readonly OperandName[], shape: readonly number[], layout: Layout = "contiguous"): Specs {
  const other = layout === "contiguous" ? "contiguous" : layouts[(layouts.indexOf(layout) + 1) % layouts.length];
  const all: Required<Specs> = {
    x: { shape, layout },
    residual: { shape, layout: other },
    weight: vectorOf(shape, { layout: other }),
    bias: vectorOf(shape, { layout }),
  };
  return Object.fromEntries(has.map((name) => [name, all[name]]));
}

function samplesOf(has: readonly OperandName[]): Sample<Options>[] {
  const without = has.filter((name) => name === "x" || name === "residual");
  const wide = { dtype: "float32" } as const;
  const mixed = operandsOf(has, [3, 33]);
  return [
    ...shapes.map((shape) => sampleOf(operandsOf(has, shape), { own: epsFor(shape) })),
    ...layouts.map((layout) => sampleOf(operandsOf(has, [3, 4, 20], layout))),
    sampleOf(operandsOf(has, [20, 33], "transposed"), { name: "rows side by side" }),
    sampleOf(operandsOf(without, [3, 33]), { name: "without parameters" }),
    sampleOf(operandsOf(has, [3, 33]), { name: "a large eps", own: { eps: 2 } }),
    sampleOf(
      { ...mixed, weight: vectorOf([33], wide), ...(has.includes("bias") && { bias: vectorOf([33], wide) }) },
      { name: "float32 parameters", dtypes: halves },
    ),
    ...special.map((list) =>
      sampleOf(
        { ...operandsOf(has, [3, 4]), x: { shape: [3, 4], values: { list: [...list, 1, 2, -1, 0.25] } } },
        { name: `[${list.join(" ")}]`, gradient: false },
      ),
    ),
  ];
}

const layerSamples: readonly Sample<Options>[] = [
  ...samplesOf(["x", "weight", "bias"]),
  sampleOf(operandsOf(["x", "weight"], [3, 33]), { name: "weight only" }),
  sampleOf(operandsOf(["x", "bias"], [3, 33]), { name: "bias only" }),
  sampleOf(
    { x: { shape: [3, 33] }, bias: vectorOf([33], { dtype: "float32" }) },
    { name: "float32 bias only", dtypes: halves },
  ),
  ...(["contiguous", "transposed", "reversed"] as const).map((layout) =>
    sampleOf(
      { x: { shape: [3, 4, 5], layout }, weight: { shape: [4, 5], layout }, bias: { shape: [4, 5] } },
      { name: `two axes ${layout}`, own: { normalizedShape: [4, 5] } },
    ),
  ),
  sampleOf({ x: { shape: [3, 4] } }, { name: "all axes", own: { normalizedShape: [3, 4] } }),
];

interface Kind {
  readonly name: string;
  readonly isCentered: boolean;
  readonly eps: number;
  readonly compute: (operands: Partial<Record<OperandName, Tensor>>, options: Options) => readonly Tensor[];
  readonly samples: readonly Sample<Options>[];
}

const given = ({ eps, normalizedShape }: Options) => ({
  ...(eps && { eps }),
  ...(normalizedShape && { normalizedShape }),
});

const kinds: readonly Kind[] = [
  {
    name: "layerNorm",
    isCentered: true,
    eps: 1e-5,
    samples: layerSamples,
    compute: ({ x, weight, bias }, options) => [layerNorm(x!, { weight, bias, ...given(options) })],
  },
  {
    name: "rmsNorm",
    isCentered: false,
    eps: 1e-6,
    samples: samplesOf(["x", "weight"]),
    compute: ({ x, weight }, options) => [rmsNorm(x!, { weight, ...given(options) })],
  },
  {
    name: "addLayerNorm",
    isCentered: true,
    eps: 1e-5,
    samples: samplesOf(["x", "residual", "weight", "bias"]),
    compute: ({ x, residual, weight, bias }, options) => {
      const { out, sum } = addLayerNorm(x!, residual!, { weight, bias, ...given(options) });
      return [out, sum];
    },
  },
  {
    name: "addRmsNorm",
    isCentered: false,
    eps: 1e-6,
    samples: samplesOf(["x", "residual", "weight"]),
    compute: ({ x, residual, weight }, options) => {
      const { out, sum } = addRmsNorm(x!, residual!, { weight, ...given(options) });
      return [out, sum];
    },
  },
];

const row = ({ name, isCentered, eps, compute, samples }: Kind): OperationRow<Options> => ({
  name,
  compute: (inputs, options) => compute(named(options, inputs), options),
  dtypes: floats,
  samples,
  oracle: (inputs, options, round) => oracle(inputs, options, round, isCentered, eps),
  accuracy: { flash: true },
  gradient: true,
  // A row's sums may cancel, and so may the sums over rows. The factors of 8 are those of softmax.
  gradientRoundings: ([x]) => 8 * (8 + Math.log2((x.shape.at(-1) ?? 1) + 1) + Math.log2(x.values.length + 1)),
});

testTable("normalization", kinds.map(row));
