/** Searches among sorted elements, modes and runs of drawn sizes, layouts and dtypes, compared with loops. */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import * as library from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tidy } from "../../../src/tensor/tidy.ts";
import { tested } from "../run.ts";
import { hash, Random } from "../samples.ts";

const dtypes = ["float32", "bfloat16", "int64", "int32", "uint8", "float16", "float64"] as const;

const drawnNumbers = (random: Random, count: number, most: number): number[] =>
  Array.from({ length: count }, () => random.integer(0, most));

const made = (values: readonly number[], shape: readonly number[], dtype: (typeof dtypes)[number]): Tensor =>
  library.toDType(library.tensor(Float32Array.from(values), { shape: [...shape] }), dtype) as Tensor;

const numbersOf = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number | bigint>, Number);

function onEach(name: string, rounds: number, body: (random: Random, dtype: (typeof dtypes)[number]) => void): void {
  test.each(tested)(`${name} is right, on %s`, (backend) => {
    const random = new Random(hash(name));
    for (let round = 0; round < rounds; round++)
      withStrict(true, () =>
        withBackend(backend, () => tidy(() => body(random, dtypes[random.integer(0, backend === "metal" ? 5 : 6)]))),
      );
  });
}

describe("searchsorted and bucketize use runs of equal elements", () => {
  onEach("drawn lists and values", 24, (random, dtype) => {
    const [lists, size, count] = [random.integer(1, 3), random.integer(0, 40), random.integer(1, 30)];
    const rows = Array.from({ length: lists }, () => drawnNumbers(random, size, 60).sort((a, b) => a - b));
    const values = drawnNumbers(random, lists * count, 62);
    const right = random.integer(0, 1) === 1;
    const expected = values.map((value, at) => {
      const row = rows[Math.floor(at / count)];
      return row.filter((element) => (right ? element <= value : element < value)).length;
    });
    const sorted = made(rows.flat(), [lists, size], dtype);
    const isVector = lists === 1 && random.integer(0, 1) === 1;
    const given = library.transpose(
      library.contiguous(library.transpose(made(values, [lists, count], dtype), 0, 1)),
      0,
      1,
    );
    const found = isVector
      ? library.bucketize(given, library.reshape(sorted, [size]), { right })
      : library.searchsorted(sorted, given, { right });
    expect(numbersOf(library.contiguous(found))).toEqual(expected);
  });

  onEach("NaN comes after every number", 1, () => {
    const sorted = library.tensor([1, 2, 4]);
    const found = library.searchsorted(sorted, library.tensor([Number.NaN, 3, 2, Number.POSITIVE_INFINITY]));
    expect(numbersOf(found)).toEqual([3, 2, 1, 3]);
  });
});

/** The most frequent number and its last index; of equally frequent numbers, the smallest. */
function modeOf(row: readonly number[]): { value: number; index: number } {
  const counts = new Map<number, number>();
  for (const value of row) counts.set(value, (counts.get(value) ?? 0) + 1);
  const most = Math.max(...counts.values());
  const value = Math.min(...[...counts].filter(([, count]) => count === most).map(([each]) => each));
  return { value, index: row.lastIndexOf(value) };
}

onEach("modes of drawn slices", 16, (random, dtype) => {
  const [rows, length] = [random.integer(1, 5), random.integer(1, 60)];
  const values = drawnNumbers(random, rows * length, random.integer(1, 20));
  const expected = Array.from({ length: rows }, (_, row) => modeOf(values.slice(row * length, (row + 1) * length)));
  const isTransposed = random.integer(0, 1) === 1;
  const x = made(values, [rows, length], dtype);
  const given = isTransposed ? library.contiguous(library.transpose(x, 0, 1)) : x;
  const found = library.mode(given, isTransposed ? 0 : 1);
  expect(numbersOf(found.values)).toEqual(expected.map(({ value }) => value));
  expect(numbersOf(found.indices)).toEqual(expected.map(({ index }) => index));
});

onEach("medians of drawn slices, some with NaN", 24, (random, dtype) => {
  const [rows, length] = [random.integer(1, 5), random.integer(1, 40)];
  const hasNaN = dtype.includes("float") && random.integer(0, 1) === 1;
  const values = drawnNumbers(random, rows * length, 50).map((value) =>
    hasNaN && random.integer(0, 9) === 0 ? Number.NaN : value,
  );
  const slices = Array.from({ length: rows }, (_, row) => values.slice(row * length, (row + 1) * length));
  const middle = (numbers: readonly number[]): number =>
    numbers.length === 0 ? Number.NaN : numbers.toSorted((a, b) => a - b)[(numbers.length - 1) >> 1];
  const isTransposed = random.integer(0, 1) === 1;
  const x = made(values, [rows, length], dtype);
  const given = isTransposed ? library.contiguous(library.transpose(x, 0, 1)) : x;
  const options = { dim: isTransposed ? 0 : 1, keepdim: true } as const;
  for (const [compute, expected] of [
    [library.median, slices.map((slice) => (slice.some(Number.isNaN) ? Number.NaN : middle(slice)))],
    [library.nanmedian, slices.map((slice) => middle(slice.filter((value) => !Number.isNaN(value))))],
  ] as const) {
    const { values: found, indices } = compute(given, options);
    expect(found.shape).toEqual(isTransposed ? [1, rows] : [rows, 1]);
    expect(numbersOf(library.toDType(found, "float32"))).toEqual(expected);
    expect(numbersOf(indices).map((at, row) => slices[row][at])).toEqual(expected);
    for (const [row, at] of numbersOf(indices).entries())
      if (Number.isNaN(expected[row])) expect(at).toBe(slices[row].findIndex(Number.isNaN));
  }
});

onEach("runs of drawn vectors", 24, (random, dtype) => {
  const values = drawnNumbers(random, random.integer(1, 80), random.integer(0, 6));
  const isSorted = random.integer(0, 1) === 1;
  const ordered = isSorted ? values.toSorted((a, b) => a - b) : values;
  const begins = ordered.flatMap((value, at) => (value === ordered[at - 1] ? [] : [at]));
  const firsts = begins.map((at) => ordered[at]);
  const pairs = library.stack([made(values, [values.length], dtype), made(values, [values.length], dtype)], 1);
  const x = library.select(pairs, 1, 1); // a column: its elements are not adjacent
  const options = { returnInverse: true, returnCounts: true } as const;
  const found = isSorted ? library.unique(x, options) : library.uniqueConsecutive(x, options);
  expect(numbersOf(found.values)).toEqual(firsts);
  expect(numbersOf(found.counts!)).toEqual(begins.map((at, run) => (begins[run + 1] ?? values.length) - at));
  expect(numbersOf(found.inverse!)).toEqual(
    values.map((value, at) => (isSorted ? firsts.indexOf(value) : begins.filter((begin) => begin <= at).length - 1)),
  );
});
