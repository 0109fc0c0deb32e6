/** Short runs and shared indices on the cpu backend, which have loops of their own: drawn odd sizes, many runs. */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import {
  type DType,
  indexAdd,
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

describe("results of runs", () => {
  const [x, few] = [rand([1031, 131]), rand([1031, 19])];
  const chosen = int64(indices(19, 131));
  const [wide, source] = [rand([3, 700]), rand([211, 700])];
  const rows = toDType(rand([211, 700]).mul(3).floor(), "int64");
  testSameBits((backend) =>
    backend === "metal"
      ? []
      : [
          indexSelect(x, 1, chosen).dataSync(),
          indexAdd(x, 1, chosen, few).dataSync(),
          scatterReduce(wide, 0, rows, source, "sum").dataSync(),
          scatterReduce(wide, 0, rows, source, "amax").dataSync(),
          sub(narrow(x, 1, 1, 130), narrow(x, 1, 0, 130))
            .exp()
            .dataSync(),
        ],
  );
});
