/**
 * Pairs of operands that are broadcast: rows, columns, scalars and single axes of drawn sizes, layouts and dtypes, in
 * lines shorter and longer than the pieces in which the cpu backend computes. Compared with a loop over plain numbers.
 */
import { expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import * as library from "../../../src/ops/index.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";
import { hash, Random } from "../samples.ts";

const dtypes = ["float32", "float16", "bfloat16", "int64", "uint8", "float64"] as const;

test.each(tested)("drawn broadcasts equal expanded operands, on %s", (backend) => {
  const random = new Random(hash("broadcast layouts"));
  for (let round = 0; round < 48; round++)
    withStrict(true, () =>
      withBackend(backend, () => {
        const isLong = backend === "cpu" && round % 3 === 0;
        const shape = [
          random.integer(1, 5),
          random.integer(1, 6),
          isLong ? random.integer(90, 3000) : random.integer(1, 9),
        ];
        if (random.integer(0, 2) === 0) shape.reverse();
        const dtype = dtypes[random.integer(0, backend === "metal" ? 4 : 5)];
        const operands = [0, 1].map((which) => {
          const sizes = shape.map((size) => (which === 1 && random.integer(0, 1) === 0 ? 1 : size));
          const values = Array.from({ length: elementCount(sizes) }, () => random.integer(0, 9));
          const dense = library.toDType(library.tensor(Float32Array.from(values), { shape: sizes }), dtype) as Tensor;
          const isMoved = random.integer(0, 3) === 0;
          const x = isMoved ? library.transpose(library.contiguous(library.transpose(dense, 0, 2)), 0, 2) : dense;
          return { x, values, sizes };
        });
        const [a, b] = operands as [(typeof operands)[0], (typeof operands)[0]];
        const expected = a.values.map((value, at) => {
          const place = shape.map((size, axis) => Math.floor(at / elementCount(shape.slice(axis + 1))) % size);
          const other = place.reduce((sum, each, axis) => sum * b.sizes[axis] + (b.sizes[axis] === 1 ? 0 : each), 0);
          return value * b.values[other] + (value < b.values[other] ? 1 : 0);
        });
        const isLess = library.toDType(library.lt(a.x, b.x), dtype) as Tensor;
        const result = library.add(library.mul(a.x, b.x), isLess) as Tensor;
        expect(Array.from(library.toDType(result, "float32").dataSync(), Number)).toEqual(expected);
      }),
    );
});

test.each(tested)("runs that each repeat an element, of any length, on %s", (backend) => {
  const random = new Random(hash("repeated runs"));
  for (let round = 0; round < 64; round++)
    withBackend(backend, () => {
      const most = backend === "cpu" ? [20, 300, 700][round % 3] : 20;
      const [rows, length] = [random.integer(1, 12), random.integer(1, most)];
      const dtype = dtypes[random.integer(0, backend === "metal" ? 4 : 5)];
      const drawn = (size: number): number[] => Array.from({ length: size }, () => random.integer(0, 9));
      const [values, column] = [drawn(rows * length), drawn(rows)];
      const of = (list: readonly number[], shape: readonly number[]): Tensor =>
        library.toDType(library.tensor(Float32Array.from(list), { shape }), dtype) as Tensor;
      const [x, y] = [of(values, [rows, length]), of(column, [rows, 1])];
      const listed = (result: Tensor): number[] => Array.from(library.toDType(result, "float32").dataSync(), Number);
      const sums = values.map((value, at) => value + column[Math.floor(at / length)]);
      expect([rows, length, dtype, listed(library.add(x, y) as Tensor)]).toEqual([rows, length, dtype, sums]);
      expect(listed(x.add_(y))).toEqual(sums);
      expect(listed(x.copy_(y))).toEqual(values.map((_, at) => column[Math.floor(at / length)]));
    });
});
