/** Shared by the tests of elementwise operations: samples, and oracles with broadcast operands. */
import type { DType } from "../../../src/tensor/dtype.ts";
import { placeIn } from "../broadcast.ts";
import type { Block, Layout, OperandSpec, Values } from "../samples.ts";
import { commonShapes, type Expected, manyRows, type Sample, withLayouts } from "../table.ts";

export const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];
export const integers: readonly DType[] = ["int64", "int32", "uint32", "int8", "uint8"];
export const signed: readonly DType[] = ["int64", "int32", "int8"];

/** Numbers where functions often fail, in the range of every float dtype. */
export const specials = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  2,
  -2,
  2.5,
  -2.5,
  1e-4,
  -1e-4,
  100,
  -100,
  6e4,
  -6e4,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
];

const extra: readonly Layout[] = [
  "offset",
  "transposed",
  "strided",
  "reversed",
  "expanded",
  "transposed",
  "strided",
  "reversed",
  "offset",
];

/** One operand of every shape and layout. */
export function unarySamples(values?: Values): Sample[] {
  return withLayouts(commonShapes, extra).map((spec) => ({ inputs: [withValues(spec, values)], options: undefined }));
}

export const withValues = (spec: OperandSpec, values?: Values): OperandSpec => (values ? { ...spec, values } : spec);

/** A sample of given numbers, for floats; without a gradient, which may not exist there. */
export const sampleOf = (name: string, ...lists: readonly (readonly number[])[]): Sample => ({
  name,
  inputs: lists.map((list) => ({ shape: [list.length], values: { list } })),
  options: undefined,
  dtypes: floats,
  gradient: false,
});

/** All pairs of elements of two lists: the first elements of the pairs, and the second elements. */
export const pairs = (first: readonly number[], second = first): [number[], number[]] => [
  first.flatMap((a) => second.map(() => a)),
  first.flatMap(() => [...second]),
];

/** Shapes of operands that broadcast together, in the layouts that matter. */
export const broadcasts: readonly (readonly OperandSpec[])[] = [
  [{ shape: [] }, { shape: [] }],
  [{ shape: [7] }, { shape: [7] }],
  [{ shape: [0] }, { shape: [1] }],
  [{ shape: [2, 0, 3] }, { shape: [] }],
  [{ shape: [3, 5] }, { shape: [5] }],
  [{ shape: [5, 1] }, { shape: [1, 7] }],
  [{ shape: [4, 1, 3] }, { shape: [2, 1] }],
  [{ shape: [1031] }, { shape: [] }],
  [{ shape: [] }, { shape: [3, 5], layout: "transposed" }],
  [{ shape: [3, 5], layout: "transposed" }, { shape: [3, 5] }],
  [
    { shape: [17, 3], layout: "strided" },
    { shape: [17, 3], layout: "reversed" },
  ],
  [
    { shape: [6, 5], layout: "expanded" },
    { shape: [6, 5], layout: "offset" },
  ],
  [{ shape: [manyRows, 129] }, { shape: [129], layout: "reversed" }],
  [{ shape: [manyRows, 129] }, { shape: [manyRows, 1] }],
];

/** Two operands of every combination of shapes, with different values. */
export const binarySamples = (first?: Values, second = first): Sample[] =>
  broadcasts.map(([a, b]) => ({ inputs: [withValues(a, first), withValues(b, second)], options: undefined }));

/** f of each combination of elements, broadcast. */
export function mapped(blocks: readonly Block[], f: (...values: number[]) => number, dtype?: DType): Expected {
  const rank = Math.max(...blocks.map(({ shape }) => shape.length));
  const aligned = blocks.map(({ shape }) => [...new Array<number>(rank - shape.length).fill(1), ...shape]);
  const shape = Array.from({ length: rank }, (_, axis) => {
    const sizes = aligned.map((own) => own[axis]);
    return sizes.find((size) => size !== 1) ?? 1;
  });
  const values: number[] = [];
  const count = shape.reduce((product, size) => product * size, 1);
  for (let index = 0; index < count; index++) {
    const operands = blocks.map((block) => block.values[placeIn(block.shape, shape, index)]);
    values.push(f(...operands));
  }
  return { shape, values, ...(dtype && { dtype }) };
}

// Points and weights of the Gauss–Legendre rule with five points on (-1, 1).
const near = Math.sqrt(5 - 2 * Math.sqrt(10 / 7)) / 3;
const far = Math.sqrt(5 + 2 * Math.sqrt(10 / 7)) / 3;
const nearWeight = (322 + 13 * Math.sqrt(70)) / 900;
const farWeight = (322 - 13 * Math.sqrt(70)) / 900;
const rule = [
  [0, 128 / 225],
  [near, nearWeight],
  [-near, nearWeight],
  [far, farWeight],
  [-far, farWeight],
] as const;

/** erf by integration: the rule on each of 80 parts. */
export function erf(x: number): number {
  if (Number.isNaN(x)) return x;
  const half = Math.min(Math.abs(x), 6.5) / 160;
  let sum = 0;
  let lost = 0; // Kahan summation: the rounding error of each addition is added to the next term
  for (let part = 79; part >= 0; part--)
    for (const [point, weight] of rule) {
      const term = weight * Math.exp(-((half * (2 * part + 1 + point)) ** 2)) - lost;
      const next = sum + term;
      lost = next - sum - term;
      sum = next;
    }
  return (Math.sign(x) * sum * half * 2) / Math.sqrt(Math.PI);
}

/** The nearest whole number, with halves rounded to even. */
export function toEven(x: number): number {
  const rounded = Math.round(x);
  return Math.abs(x - Math.trunc(x)) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}
