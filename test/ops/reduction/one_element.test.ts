/** Axes of one element, and axes that repeat one element. */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { amax, argmax, contiguous, mean, nansum, prod, sum, type Tensor, tensor } from "../../../src/index.ts";
import { tested } from "../run.ts";
import { Random } from "../samples.ts";

const random = new Random(5802);
const drawn = (count: number) => Array.from({ length: count }, () => Math.fround(random.next() * 4 - 2));

const floats = (x: Tensor) => Array.from(x.dataSync() as Float32Array);

describe.each(tested)("on %s", (backend) => {
  test.each([3, 8, 37, 1031])("reductions of %d rows of one element return the elements", (rows) => {
    withBackend(backend, () => {
      const values = drawn(rows);
      const x = tensor(values, { shape: [rows, 1] });
      for (const reduce of [sum, mean, prod, amax] as readonly ((x: Tensor, dim: number) => Tensor)[])
        expect(Array.from(reduce(x, -1).dataSync() as Float32Array)).toEqual(values);
      expect(Array.from(argmax(x, -1).dataSync() as BigInt64Array)).toEqual(values.map(() => 0n));
    });
  });

  const error = backend === "metal" ? 1e-5 : 0; // Metal adds elements of a copy in another order
  test("nansum of expanded tensors equals nansum of their copies", () => {
    withBackend(backend, () => {
      const layouts: readonly (readonly [number[], number[]])[] = [
        [
          [13, 1],
          [13, 29],
        ],
        [
          [1, 29],
          [13, 29],
        ],
        [
          [1, 7, 1],
          [3, 7, 5],
        ],
      ];
      for (const [shape, expanded] of layouts) {
        const values = drawn(shape.reduce((product, size) => product * size, 1)).map((value, at) =>
          at % 3 === 1 ? Number.NaN : value,
        );
        const x = tensor(values, { shape: [...shape] }).expand([...expanded]);
        for (const dim of [undefined, 0, -1])
          for (const [at, copied] of floats(nansum(contiguous(x), { dim })).entries())
            expect(Math.abs(floats(nansum(x, { dim }))[at] - copied)).toBeLessThanOrEqual(error);
      }
    });
  });
});
