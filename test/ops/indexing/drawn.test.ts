/**
 * Masks, and scatters of few indices, of drawn shapes, layouts and dtypes, compared with loops over plain numbers. Some
 * have more elements than a block of the cpu backend, so that several threads divide the work.
 */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import * as library from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";
import { hash, Random } from "../samples.ts";

const dtypes = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool"] as const;

/** A drawn tensor, contiguous or a view, with its elements in row-major order; small whole numbers are exact. */
function drawn(random: Random, shape: readonly number[], dtype: DType, largest: number) {
  const count = elementCount(shape);
  const values = Array.from({ length: count }, () => random.integer(0, dtype === "bool" ? 1 : largest));
  const dense = library.toDType(library.tensor(Float32Array.from(values), { shape: [...shape] }), dtype) as Tensor;
  const layout = random.integer(0, 2);
  if (layout === 0 || shape.length === 0) return { x: dense, values };
  const axis = random.integer(0, shape.length - 1);
  if (layout === 1) {
    const other = random.integer(0, shape.length - 1);
    return { x: library.transpose(library.contiguous(library.transpose(dense, axis, other)), axis, other), values };
  }
  const doubled = library.repeatInterleave(dense, 2, { dim: axis }) as Tensor;
  return { x: library.slice(doubled, { dim: axis, step: 2 }), values };
}

const numbers = (x: Tensor): number[] => Array.from(library.toDType(x, "float32").dataSync() as Float32Array);

/** A shape of few elements, or of more than a block. */
function shapeOf(random: Random, isLarge: boolean): number[] {
  if (isLarge) return random.integer(0, 1) === 0 ? [3, random.integer(5000, 9000), 2] : [random.integer(20000, 50000)];
  return Array.from({ length: random.integer(1, 4) }, () => random.integer(0, 5));
}

describe.each(tested)("drawn indices and masks on %s", (backend) => {
  const hasFloat64 = backend !== "metal";
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));
  const rounds = (name: string, count: number, body: (random: Random, isLarge: boolean) => void) => {
    const random = new Random(hash(name));
    for (let round = 0; round < count; round++) on(() => body(random, backend === "cpu" && round % 8 === 7));
  };

  test("nonzero, and selecting and replacing by a mask, equal a loop", () => {
    rounds("masks", 48, (random, isLarge) => {
      const shape = shapeOf(random, isLarge);
      const count = elementCount(shape);
      const dtype = dtypes[random.integer(hasFloat64 ? 0 : 1, dtypes.length - 1)];
      const { x, values } = drawn(random, shape, dtype, 3);
      const mask = drawn(random, shape, "bool", 1) as { x: Tensor<"bool">; values: number[] };
      const source = drawn(random, [count], dtype, 3);
      const coordinates = values.flatMap((value, at) => {
        if (value === 0) return [];
        return shape.map((size, axis) => Math.floor(at / elementCount(shape.slice(axis + 1))) % size);
      });
      const found = library.nonzero(x);
      expect(found.shape).toEqual([values.filter((value) => value !== 0).length, shape.length]);
      expect(numbers(found)).toEqual(coordinates);
      const selected = values.filter((_, at) => mask.values[at] === 1);
      expect(numbers(library.maskedSelect(x, mask.x))).toEqual(selected);
      expect(numbers(library.at(x, mask.x))).toEqual(selected);
      let next = 0;
      const replaced = values.map((value, at) => (mask.values[at] === 1 ? source.values[next++] : value));
      const result = library.maskedScatter(x, mask.x, source.x);
      expect([result.dtype, result.shape]).toEqual([x.dtype, shape]);
      expect(numbers(result)).toEqual(replaced);
    });
  });

  test("filling by a mask in place equals a loop, for whole tensors, views and broadcast masks", () => {
    rounds("fillings", 48, (random, isLarge) => {
      const shape = shapeOf(random, isLarge);
      const dtype = dtypes[random.integer(hasFloat64 ? 0 : 1, dtypes.length - 1)];
      const { x, values } = drawn(random, shape, dtype, 9);
      const masked = shape.map((size) => (random.integer(0, 2) === 0 ? 1 : size));
      const mask = drawn(random, masked, "bool", 1) as { x: Tensor<"bool">; values: number[] };
      const isSet = numbers(library.expand(mask.x, shape));
      const target = random.integer(0, 1) === 0 ? x : library.clone(x);
      expect(library.maskedFill_(target, mask.x, 1)).toBe(target);
      expect(numbers(target)).toEqual(values.map((value, at) => (isSet[at] === 1 ? 1 : value)));
    });
  });

  test("complex tensors are filled with a fraction", () => {
    on(() => {
      const x = library.tensor([1, 2, 3], { dtype: "complex64" });
      const mask = library.tensor([true, false, true]);
      const parts = (each: Tensor) => numbers(library.real(each));
      expect(parts(library.maskedFill(x, mask, 0.5))).toEqual([0.5, 2, 0.5]);
      expect(parts(library.maskedFill_(library.clone(x), mask, 0.5))).toEqual([0.5, 2, 0.5]);
      expect(parts(library.indexFill(x, 0, library.tensor([1n]), 0.5))).toEqual([1, 0.5, 3]);
    });
  });

  test("masks and tensors are broadcast", () => {
    rounds("broadcast masks", 12, (random) => {
      const [rows, columns] = [random.integer(1, 9), random.integer(1, 9)];
      const x = drawn(random, [columns], "float32", 9);
      const mask = drawn(random, [rows, 1], "bool", 1) as { x: Tensor<"bool">; values: number[] };
      const expected = mask.values.flatMap((isSet) => (isSet === 1 ? x.values : []));
      expect(numbers(library.maskedSelect(x.x, mask.x))).toEqual(expected);
    });
  });

  test("scatters of few indices into many elements, and of many into few, equal a loop", () => {
    const ways = {
      scatter: (_before: number, value: number) => value,
      scatterAdd: (before: number, value: number) => before + value,
      amax: Math.max,
      amin: Math.min,
    } as const;
    rounds("scatters", 48, (random, isLarge) => {
      const [outer, inner] = [random.integer(1, 3), random.integer(1, isLarge ? 700 : 40)];
      const [size, length] = [random.integer(1, isLarge ? 90 : 40), random.integer(1, 12)];
      const dtype = dtypes[random.integer(hasFloat64 ? 0 : 1, 5)];
      const { x, values } = drawn(random, [outer, size, inner], dtype, 9);
      const source = drawn(random, [outer, length, inner], dtype, 9);
      const isShared = random.integer(0, 1) === 1;
      const places = drawn(random, isShared ? [1, length, 1] : [outer, length, inner], "int64", size - 1);
      const index = library.expand(places.x, [outer, length, inner]) as Tensor<"int64">;
      const way = (Object.keys(ways) as (keyof typeof ways)[])[random.integer(0, 3)];
      const includeSelf = way === "scatter" || way === "scatterAdd" || random.integer(0, 1) === 1;
      const [expected, isNamed] = [[...values], new Set<number>()];
      for (const [at, value] of source.values.entries()) {
        const [slab, step, column] = [Math.floor(at / (length * inner)), Math.floor(at / inner) % length, at % inner];
        const to = (slab * size + places.values[isShared ? step : at]) * inner + column;
        expected[to] = includeSelf || isNamed.has(to) ? ways[way](expected[to], value) : value;
        isNamed.add(to);
      }
      const result =
        way === "scatter" || way === "scatterAdd"
          ? (way === "scatter" ? library.scatter : library.scatterAdd)(x, 1, index, source.x)
          : library.scatterReduce(x, 1, index, source.x, way, { includeSelf });
      expect(numbers(result)).toEqual(expected);
    });
  });

  test("the gradient of an embedding is right for few indices of a large table", () => {
    rounds("embedding", 8, (random, isLarge) => {
      const [rows, width, count] = [
        random.integer(1, isLarge ? 20000 : 90),
        random.integer(1, 33),
        random.integer(1, 9),
      ];
      const weight = library.ones([rows, width]);
      weight.requiresGrad = true;
      const places = drawn(random, [count], "int64", rows - 1);
      const gradients = drawn(random, [count, width], "float32", 9);
      const output = library.embedding(places.x, weight);
      const [gradient] = grad([output], [weight], { gradOutputs: [gradients.x] });
      const expected = new Array<number>(rows * width).fill(0);
      for (const [at, value] of gradients.values.entries())
        expected[places.values[Math.floor(at / width)] * width + (at % width)] += value;
      expect(numbers(gradient)).toEqual(expected);
    });
  });
});
