/** Short runs and shared indices on the cpu backend, which have loops of their own: drawn odd sizes, many runs. */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import {
  type DType,
  indexAdd,
  indexCopy,
  indexFill,
  indexReduce,
  indexSelect,
  narrow,
  rand,
  scatterReduce,
  sub,
  type Tensor,
  tensor,
  toDType,
} from "../../../src/index.ts";
import { testSameBits } from "../same_bits.ts";
import { Random } from "../samples.ts";

const random = new Random(5801);
const whole = (least: number, most: number) => random.integer(least, most);
const numbers = (x: Tensor) => Array.from(toDType(x, "float64").dataSync() as Float64Array);
const indices = (count: number, size: number) => Array.from({ length: count }, () => whole(0, size - 1));
const int64 = (values: readonly number[]) => tensor(values.map(BigInt), { dtype: "int64" });

/** Along the last axis of [rows, size]: the drawn cases have more elements than a task of the cpu backend. */
const cases = Array.from({ length: 6 }, () => {
  const [size, count] = [whole(3, 70), whole(2, 37)];
  return { rows: whole(9000, 12_000) / Math.min(size, count), size, count };
}).map(({ rows, ...each }) => ({ rows: Math.ceil(rows) + 7, ...each }));

describe.each(cases)("$rows rows of $size, $count indices", ({ rows, size, count }) => {
  test.each(["float32", "bfloat16", "float64"] as const)("indexSelect of %s", (dtype: DType) => {
    withBackend("cpu", () => {
      const stored = rand([3, size, rows], { dtype: "float32" });
      for (const x of [toDType(stored.transpose(1, 2), dtype), toDType(stored, dtype).transpose(1, 2)]) {
        const chosen = indices(count, size);
        const values = numbers(x);
        const wanted = Array.from({ length: 3 * rows }, (_, row) => chosen.map((at) => values[row * size + at]));
        expect(numbers(indexSelect(x, 2, int64(chosen)))).toEqual(wanted.flat());
        expect(() => indexSelect(x, 2, int64([...chosen, size])).dataSync()).toThrow(`${size}`);
      }
    });
  });

  test("indexAdd", () => {
    withBackend("cpu", () => {
      const [x, chosen] = [rand([rows, 5 * size]), indices(count, 5 * size)];
      const source = rand([rows, count]);
      const wanted = numbers(x);
      const added = numbers(source);
      for (let row = 0; row < rows; row++)
        for (const [at, place] of chosen.entries()) wanted[row * 5 * size + place] += added[row * count + at];
      const result = indexAdd(x, 1, int64(chosen), source);
      expect(numbers(result)).toEqual(Array.from(Float32Array.from(wanted)));
    });
  });

  test("a difference of slices", () => {
    withBackend("cpu", () => {
      const x = rand([rows, size]);
      const values = numbers(x);
      const wanted = values.flatMap((value, at) => (at % size === 0 ? [] : [Math.fround(value - values[at - 1])]));
      expect(numbers(sub(narrow(x, 1, 1, size - 1), narrow(x, 1, 0, size - 1)))).toEqual(wanted);
    });
  });
});

describe("slices with one list of indices, as rows", () => {
  // few columns, a part of a block of vectors, and several blocks; places that none, one or many indices name
  const shapes = [3, 4, 7, 31, 32, 50, 150, 600].map((columns) => ({
    columns,
    outer: whole(1, 3),
    size: whole(2, 60),
    count: whole(1, 90),
  }));
  const dtypesOfRows = ["float32", "bfloat16", "float16", "float64"] as const;
  /** Rounds numbers of float64 to float32, and then to a narrower dtype, as the backend does. */
  const rounded = (values: readonly number[], dtype: DType) =>
    numbers(dtype === "float64" ? tensor([...values], { dtype }) : toDType(tensor(values.map(Math.fround)), dtype));

  test.each(shapes)("$outer x $size x $columns, $count indices", ({ columns, outer, size, count }) => {
    withBackend("cpu", () => {
      for (const dtype of dtypesOfRows) {
        const x = toDType(rand([outer, size, columns]), dtype);
        const source = toDType(rand([outer, count, columns]).add(0.5), dtype);
        const chosen = indices(count, size);
        const [before, given] = [numbers(x), numbers(source)];
        const combined = (start: (place: number) => number, combine: (a: number, b: number) => number) => {
          const states = before.map((_, place) => start(place));
          const isNamed = new Set<number>();
          for (const [at, value] of given.entries()) {
            const [slab, step, column] = [
              Math.floor(at / (count * columns)),
              Math.floor(at / columns) % count,
              at % columns,
            ];
            const to = (slab * size + chosen[step]) * columns + column;
            states[to] = combine(states[to], value);
            isNamed.add(to);
          }
          return rounded(
            states.map((state, to) => (isNamed.has(to) ? state : before[to])),
            dtype,
          );
        };
        const index = int64(chosen);
        const [add, multiply] = [(a: number, b: number) => a + b, (a: number, b: number) => a * b];
        const self = (place: number) => before[place];
        expect(numbers(indexAdd(x, 1, index, source))).toEqual(combined(self, add));
        const options = { includeSelf: false };
        expect(numbers(indexReduce(x, 1, index, source, "prod"))).toEqual(combined(self, multiply));
        expect(numbers(indexReduce(x, 1, index, source, "prod", options))).toEqual(combined(() => 1, multiply));
        expect(numbers(indexCopy(x, 1, index, source))).toEqual(combined(self, (_, value) => value));
        expect(numbers(indexFill(x, 1, index, 2))).toEqual(combined(self, () => 2));
        expect(() => indexAdd(x, 1, int64([...chosen.slice(1), size]), source).dataSync()).toThrow(`${size}`);
      }
    });
  });
});

describe("rows backwards", () => {
  const lengths = [1, 7, 8, 9, 31, 64, 1000, whole(140_000, 150_000)];
  test.each(["float64", "float32", "bfloat16", "uint8"] as const)("flips of rows of %s", (dtype: DType) => {
    withBackend("cpu", () => {
      for (const length of lengths) {
        const rows = length > 1000 ? 2 : whole(1, 5);
        const stored = toDType(rand([rows, length, 3]).mul(200).floor(), dtype);
        for (const x of [toDType(stored.select(2, 0).contiguous(), dtype), stored.narrow(1, 0, length).select(2, 1)]) {
          const values = numbers(x);
          const wanted = values.map((_, at) => values[at - (at % length) + length - 1 - (at % length)]);
          expect(numbers(x.flip([1]))).toEqual(wanted);
          expect(numbers(x.flip([0, 1]))).toEqual(values.toReversed());
        }
      }
    });
  });
});

describe("results of runs", () => {
  const [x, few] = [rand([1031, 131]), rand([1031, 19])];
  const chosen = int64(indices(19, 131));
  const [table, repeated] = [rand([57, 900]), int64(indices(211, 57))];
  const [wide, source, slices] = [rand([3, 700]), rand([211, 700]), rand([211, 900])];
  const rows = toDType(rand([211, 700]).mul(3).floor(), "int64");
  testSameBits((backend) =>
    backend === "metal"
      ? []
      : [
          indexSelect(x, 1, chosen).dataSync(),
          indexAdd(x, 1, chosen, few).dataSync(),
          indexAdd(table, 0, repeated, slices).dataSync(),
          scatterReduce(wide, 0, rows, source, "sum").dataSync(),
          scatterReduce(wide, 0, rows, source, "amax").dataSync(),
          sub(narrow(x, 1, 1, 130), narrow(x, 1, 0, 130))
            .exp()
            .dataSync(),
        ],
  );
});
