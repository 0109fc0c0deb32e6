/** Oracles of matrix products, in float64 from the definition, and the sizes and layouts of their tests. */
import { type DType, isFloat } from "../../../src/tensor/dtype.ts";
import { repeats } from "../../support/repeats.ts";
import { type Block, type Layout, layouts, type OperandSpec, Random } from "../samples.ts";
import type { Expected, Round, Sample } from "../table.ts";

export const productDTypes: readonly DType[] = [
  "float64",
  "float32",
  "float16",
  "bfloat16",
  "int64",
  "int32",
  "uint32",
  "int8",
  "uint8",
];

const bits: Readonly<Partial<Record<DType, number>>> = { int64: 64, int32: 32, uint32: 32, int8: 8, uint8: 8 };

/** A whole number as a dtype stores it: modulo its range. Floats are unchanged. */
export function wrapped(dtype: DType, value: number): number {
  if (isFloat(dtype)) return value;
  const wrap = dtype.startsWith("u") ? BigInt.asUintN : BigInt.asIntN;
  return Number(wrap(bits[dtype]!, BigInt(value)));
}

/**
 * Broadcasts the axes of a batch: returns, for an index of the result, the position in a block whose axes are `shape`.
 */
function batchPlaces(shape: readonly number[], batch: readonly number[]): number[] {
  const count = batch.reduce((product, size) => product * size, 1);
  return Array.from({ length: count }, (_, index) => {
    let rest = index;
    let place = 0;
    let stride = 1;
    for (let axis = 1; axis <= batch.length; axis++) {
      const size = batch.at(-axis)!;
      const own = shape.at(-axis) ?? 1;
      if (own !== 1) place += (rest % size) * stride;
      stride *= axis <= shape.length ? own : 1;
      rest = Math.floor(rest / size);
    }
    return place;
  });
}

const broadcast = (a: readonly number[], b: readonly number[]): number[] =>
  Array.from({ length: Math.max(a.length, b.length) }, (_, axis, rank = Math.max(a.length, b.length)) => {
    const [left = 1, right = 1] = [a.at(axis - rank), b.at(axis - rank)];
    return left === 1 ? right : left;
  }).map((size, axis, all) => (axis - all.length < -a.length && axis - all.length < -b.length ? 1 : size));

/** out[…, i, j] = Σₖ a[…, i, k] · b[…, k, j], with vectors as in PyTorch. */
export function matmulOracle(a: Block, b: Block, round: Round): Expected {
  const aShape = a.shape.length === 1 ? [1, ...a.shape] : [...a.shape];
  const bShape = b.shape.length === 1 ? [...b.shape, 1] : [...b.shape];
  const [m, k, n] = [aShape.at(-2)!, aShape.at(-1)!, bShape.at(-1)!];
  const batch = broadcast(aShape.slice(0, -2), bShape.slice(0, -2));
  const aPlaces = batchPlaces(aShape.slice(0, -2), batch);
  const bPlaces = batchPlaces(bShape.slice(0, -2), batch);
  const values: number[] = [];
  for (const [index, aPlace] of aPlaces.entries())
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let sum = 0;
        for (let at = 0; at < k; at++)
          sum = round(sum + round(a.values[(aPlace * m + i) * k + at] * b.values[(bPlaces[index] * k + at) * n + j]));
        values.push(wrapped(a.dtype, sum));
      }
  const shape = [...batch, ...(a.shape.length === 1 ? [] : [m]), ...(b.shape.length === 1 ? [] : [n])];
  return { shape, values };
}

/** Sizes at, below and above those of SIMD-groups and tiles. */
export const productSizes = [0, 1, 2, 7, 8, 16, 31, 33, 64, 65, 127, 129, 257] as const;

/**
 * Matrices with sizes drawn from {@link productSizes}, in any layouts. With three samples for each size, every size
 * occurs as m, as k and as n. Not all three are large at once, since m · k · n is limited.
 */
export function sampledMatrices(count: number, seed: number): Sample[] {
  const random = new Random(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[random.integer(0, items.length - 1)]!;
  const most = repeats({ usual: 150_000, all: 600_000 });
  return Array.from({ length: count }, (_, index) => {
    const own = productSizes[Math.floor(index / 3) % productSizes.length];
    for (;;) {
      const sizes = [0, 1, 2].map((role) => (index % 3 === role ? own : pick(productSizes)));
      const [m, k, n] = sizes as [number, number, number];
      if (m * n * k <= most) return matrices([m, k], [k, n], pick(layouts), pick(layouts));
    }
  });
}

/** One sample; gradients are tested only with small ones, which use the same kernels. */
export function matrices(
  a: readonly number[],
  b: readonly number[],
  aLayout: Layout = "contiguous",
  bLayout: Layout = "contiguous",
): Sample {
  const inputs: OperandSpec[] = [
    { shape: a, layout: aLayout },
    { shape: b, layout: bLayout },
  ];
  const work = a.reduce((product, size) => product * size, b.at(-1)!);
  return { inputs, options: undefined, gradient: work <= 40_000 };
}
