/** The result of each call on a rank, from the elements of all ranks. */
import { type DType, dtypes, isFloat } from "../../src/tensor/dtype.ts";
import { asDType, elementsOf, SIZE } from "./samples.ts";

const columns = (rows: readonly (readonly number[])[], combine: (column: number[]) => number): number[] =>
  rows[0].map((_, at) => combine(rows.map((row) => row[at])));
const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
const combining = {
  sum: total,
  max: (values: number[]) => Math.max(...values),
  min: (values: number[]) => Math.min(...values),
  mean: (values: number[]) => total(values) / values.length,
} as const;

const rounded = (dtype: DType, value: number): number => {
  if (dtype === "float16") return Math.f16round(value);
  if (dtype === "float64") return value;
  if (dtype !== "bfloat16") return Math.fround(value);
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0]; // rounds to nearest, ties to even
  const upper = (bits + 0x7fff + ((bits >>> 16) & 1)) & 0xffff0000;
  return new Float32Array(new Uint32Array([upper]).buffer)[0];
};

const stored = (dtype: DType, values: readonly number[]): (number | bigint)[] =>
  values.map((value) => (dtype === "int64" ? BigInt(value) : isFloat(dtype) ? rounded(dtype, value) : value));

const part = (values: readonly number[], rank: number, ranks: number): number[] => {
  const size = values.length / ranks;
  return values.slice(rank * size, (rank + 1) * size);
};

/** Returns the result of each call on a rank, given the elements of all ranks. */
export function expectedOf(ranks: number, rank: number): Record<string, unknown> {
  const all = Array.from({ length: ranks }, (_, own) => elementsOf(own, SIZE));
  const results: Record<string, unknown> = {};
  for (const dtype of dtypes) {
    const rows = all.map((row) => asDType(dtype, row));
    const own = (values: readonly number[]) => stored(dtype, values);
    const ops = dtype === "bool" ? (["max", "min"] as const) : (["sum", "max", "min"] as const);
    for (const op of [...ops, ...(isFloat(dtype) ? (["mean"] as const) : [])]) {
      const reduced = columns(rows, combining[op]);
      results[`allReduce ${dtype} ${op}`] = own(reduced);
      results[`reduceScatter ${dtype} ${op}`] = own(part(reduced, rank, ranks));
    }
    const [last, gathered] = [own(rows.at(-1)!), own(rows.flat())];
    const exchanged = own(rows.flatMap((row) => part(row, rank, ranks)));
    const largest = columns(rows, combining.max);
    results[`broadcast ${dtype}`] = last;
    results[`allGather ${dtype}`] = gathered;
    results[`allToAll ${dtype}`] = exchanged;
    results[`unchanged ${dtype}`] = own(rows[rank]);
    results[`async ${dtype}`] = [own(largest), last, gathered, own(part(largest, rank, ranks)), exchanged];
    results[`receive ${dtype}`] = own(rows[(rank + ranks - 1) % ranks]);
  }
  return { ...results, ...expectedSpecials(ranks), ...expectedGradients(ranks, rank) };
}

function expectedSpecials(ranks: number): Record<string, unknown> {
  const numbers = Array.from({ length: ranks }, (_, own) => own);
  const sums = columns(
    numbers.map((own) => elementsOf(own, SIZE)),
    total,
  );
  const grids = numbers.map((own) => [elementsOf(own, 3), elementsOf(own + 1, 3)]);
  const transposed = (grid: readonly number[][]) => [0, 1, 2].flatMap((at) => grid.map((row) => row[at]));
  const maxima = [Number.NaN, ranks > 1 ? -0 : -Infinity, Infinity, -1];
  const minima = [Number.NaN, -Infinity, 1, -ranks];
  return {
    "one rounding": [rounded("bfloat16", 256 + ranks - 1)],
    ...Object.fromEntries(
      ["float64", "float32", "float16"].flatMap((dtype) => [
        [`special ${dtype} max`, maxima],
        [`special ${dtype} min`, minima],
      ]),
    ),
    "of a view": columns(grids.map(transposed), total),
    "in place": { elements: sums, isX: true },
    "in place, float16": columns(
      numbers.map((own) => elementsOf(own, 4)),
      combining.mean,
    ).map(Math.f16round),
    "in place, a view": transposed(grids[1]),
    "of nothing": [],
    "of a scalar": numbers.map((own) => own + 0.5),
  };
}

/** The gradient of the sum over all ranks of Σ wᵢ · yᵢ. */
function expectedGradients(ranks: number, rank: number): Record<string, unknown> {
  const numbers = Array.from({ length: ranks }, (_, own) => own);
  const weights = (count: number) => numbers.map((own) => elementsOf(own + 5, count));
  const summed = columns(weights(SIZE), total);
  const scattered = weights(SIZE / ranks).flat();
  const divided = (values: readonly number[]) => values.map((value) => Math.fround(value / ranks));
  return {
    "gradient allReduce sum": summed,
    "gradient allReduceAsync": summed,
    "gradient allReduce mean": divided(summed),
    "gradient allGather": part(columns(weights(SIZE * ranks), total), rank, ranks),
    "gradient reduceScatter sum": scattered,
    "gradient reduceScatter mean": divided(scattered),
    "gradient broadcast": rank === 1 ? summed : summed.map(() => 0),
    "gradient allToAll": weights(SIZE).flatMap((row) => part(row, rank, ranks)),
    "gradient of a scalar": total(numbers.map((own) => elementsOf(own, ranks)[rank])),
  };
}
