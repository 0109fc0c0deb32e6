/**
 * Elements combined by indices: NaN, zeros among factors, unselected elements, views, many slices, and axes beyond the
 * index. Gradients of products are compared with sums over all other factors.
 */
import { describe, expect, test } from "bun:test";
import {
  type DType,
  grad,
  indexPut,
  mul,
  scatterAdd,
  scatterReduce,
  sum,
  type Tensor,
  tensor,
  transpose,
  withBackend,
  withStrict,
} from "../../../src/index.ts";
import { checked, testVariants } from "../../linalg/variants.ts";
import { tested } from "../run.ts";

/** Replaces -0 by 0. */
const plain = (values: readonly number[]): number[] => values.map((own) => own + 0);
const list = (x: Tensor): number[] => plain(Array.from(x.dataSync() as ArrayLike<number | bigint>, Number));
const leaf = (values: number[], dtype: DType): Tensor => tensor(values, { dtype, requiresGrad: true });

/** A product of factors without some of them. */
const without = (factors: readonly number[], ...left: number[]): number =>
  factors.reduce((product, factor, at) => (left.includes(at) ? product : product * factor), 1);

describe.each(tested)("scatterReduce on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => checked(() => withStrict(true, () => withBackend(backend, body)));
  const floats = (["float32", "float64", "bfloat16"] as const).filter(
    (dtype) => dtype !== "float64" || backend !== "metal",
  );

  test("NaN takes precedence, and stays", () => {
    for (const reduce of ["amax", "amin"] as const)
      for (const dtype of floats)
        on(() => {
          const x = tensor([1, Number.NaN, 3, 4], { dtype });
          const source = tensor([Number.NaN, 9, 7, -7, 5], { dtype });
          const found = scatterReduce(x, 0, tensor([0n, 0n, 1n, 2n, 2n]), source, reduce);
          expect(Array.from(found.dataSync() as Float32Array)).toEqual([
            Number.NaN,
            Number.NaN,
            ...(reduce === "amax" ? [5, 4] : [-7, 4]),
          ]);
        });
  });

  test("with includeSelf: false, elements without an index stay unchanged", () => {
    on(() => {
      const index = transpose(
        tensor(
          [
            [0, 2, 0],
            [2, 2, 2],
          ],
          { dtype: "int32" },
        ),
        0,
        1,
      );
      const source = tensor([
        [5n, -8n],
        [6n, -9n],
        [4n, -7n],
      ]);
      const x = tensor([
        [90n, 91n, 92n],
        [80n, 81n, 82n],
        [70n, 71n, 72n],
      ]);
      const of = (reduce: "amax" | "amin", includeSelf: boolean) =>
        Array.from(scatterReduce(x, 0, index, source, reduce, { includeSelf }).dataSync() as BigInt64Array, Number);
      expect(of("amax", false)).toEqual([5, 91, 92, 80, 81, 82, 6, -7, 72]);
      expect(of("amin", false)).toEqual([4, 91, 92, 80, 81, 82, 6, -9, 72]);
      expect(of("amin", true)).toEqual([4, 91, 92, 80, 81, 82, 6, -9, 72]);
      expect(of("amax", true)).toEqual([90, 91, 92, 80, 81, 82, 70, 71, 72]);
    });
  });

  // The values of element 0 contain no zero, those of element 1 contain one zero, and those of element 2 contain two;
  // element 3 has none.
  const index = [0, 1, 2, 1, 0, 2, 2, 1];
  const factors = [1.5, -2, 0, 0, 0.5, 3, 0, 4];
  const own = [2, 3, 0.5, 7];
  const cases = [true, false].flatMap((includeSelf) =>
    (backend === "metal" ? (["float32"] as const) : (["float32", "float64"] as const)).map(
      (dtype) => [dtype, includeSelf] as const,
    ),
  );
  /** The factors of an element: x's element or 1, then elements of the source, with their positions there. */
  const groupOf = (element: number, includeSelf: boolean) => {
    const at = index.flatMap((to, place) => (to === element ? [place] : []));
    return { at, all: [includeSelf || at.length === 0 ? own[element] : 1, ...at.map((place) => factors[place])] };
  };

  test.each(cases)("products by indices and their gradients: %s, includeSelf %s", (dtype, includeSelf) =>
    on(() => {
      const x = leaf(own, dtype);
      const source = leaf(factors, dtype);
      const result = scatterReduce(x, 0, tensor(index.map(BigInt)), source, "prod", { includeSelf });
      const groups = own.map((_, element) => groupOf(element, includeSelf));
      expect(list(result)).toEqual(plain(groups.map(({ all }) => without(all))));
      const upstream = [1, -2, 3, 0.5];
      const gradOutputs = [tensor(upstream, { dtype })];
      const expected = { x: own.map(() => 0), source: factors.map(() => 0) };
      for (const [element, { at, all }] of groups.entries()) {
        if (includeSelf || at.length === 0) expected.x[element] = upstream[element] * without(all, 0);
        for (const [factor, place] of at.entries())
          expected.source[place] = upstream[element] * without(all, factor + 1);
      }
      for (const createGraph of [false, true]) {
        const [ofX, ofSource] = grad([result], [x, source], { gradOutputs, createGraph, retainGraph: true });
        expect(list(ofX)).toEqual(plain(expected.x));
        expect(list(ofSource)).toEqual(plain(expected.source));
      }
    }),
  );

  test.each(cases)("gradients of gradients of products: %s, includeSelf %s", (dtype, includeSelf) =>
    on(() => {
      const [x, source] = [leaf(own, dtype), leaf(factors, dtype)];
      const result = scatterReduce(x, 0, tensor(index.map(BigInt)), source, "prod", { includeSelf });
      const [first] = grad([sum(result) as Tensor], [source], { createGraph: true });
      const weights = [1, 2, 3, -1, 0.5, -2, 1, 4];
      const [second] = grad([sum(mul(first, tensor(weights, { dtype }))) as Tensor], [source]);
      const expected = factors.map((_, place) => {
        const { at, all } = groupOf(index[place], includeSelf);
        const mine = at.indexOf(place);
        return at.reduce(
          (total, other, k) => (k === mine ? total : total + weights[other] * without(all, mine + 1, k + 1)),
          0,
        );
      });
      expect(list(second)).toEqual(plain(expected));
    }),
  );

  test("17 interleaved slices may have one index for all of them or one for each", () =>
    on(() => {
      const [rows, columns, length] = [5, 17, 9];
      const value = (at: number) => ((at * 7) % 11) - 5;
      const base = Array.from({ length: rows * columns }, (_, at) => ((at * 5) % 7) - 3);
      const given = Array.from({ length: length * columns }, (_, at) => value(at));
      const shared = Array.from({ length }, (_, at) => (at * 3) % 4);
      const each = given.map((_, at) => (at * 3 + Math.floor(at / columns)) % 4);
      const of = (way: (own: number, next: number) => number, at: (step: number, column: number) => number) => {
        const all = [...base];
        for (let step = 0; step < length; step++)
          for (let column = 0; column < columns; column++) {
            const to = at(step, column) * columns + column;
            all[to] = way(all[to], given[step * columns + column]);
          }
        return plain(all);
      };
      const ofEach = (step: number, column: number) => each[step * columns + column];
      const ofAll = (step: number) => shared[step];
      for (const dtype of ["float32", "int32"] as const) {
        const x = tensor(base, { dtype, shape: [rows, columns] });
        const source = tensor(given, { dtype, shape: [length, columns] });
        const indices = tensor(each.map(BigInt), { shape: [length, columns] });
        const vector = tensor(shared.map(BigInt));
        const add = (a: number, b: number) => a + b;
        expect(list(scatterAdd(x, 0, indices, source))).toEqual(of(add, ofEach));
        expect(list(indexPut(x, [vector], source, { accumulate: true }))).toEqual(of(add, ofAll));
        expect(list(indexPut(x, [vector], source))).toEqual(of((_, b) => b, ofAll));
        expect(list(scatterReduce(x, 0, indices, source, "amax"))).toEqual(of(Math.max, ofEach));
        expect(list(scatterReduce(x, 0, indices, source, "amin"))).toEqual(of(Math.min, ofEach));
        expect(list(scatterReduce(x, 0, indices, source, "prod"))).toEqual(of((a, b) => a * b, ofEach));
      }
    }));

  test("products of integers wrap, and those of many floats are rounded once", () =>
    on(() => {
      const index = tensor([1n, 1n, 1n, 0n]);
      const bytes = scatterReduce(
        tensor([3, 5], { dtype: "int8" }),
        0,
        index,
        tensor([7, 9, -3, 2], { dtype: "int8" }),
        "prod",
      );
      expect(list(bytes)).toEqual([6, ((5 * 7 * 9 * -3) << 24) >> 24]);
      const whole = scatterReduce(tensor([1n, 3n ** 20n]), 0, index, tensor([3n ** 20n, 5n, 1n, 2n]), "prod");
      expect(Array.from(whole.dataSync() as BigInt64Array)).toEqual([2n, BigInt.asIntN(64, 3n ** 40n * 5n)]);
      const factors = Array.from({ length: 2000 }, (_, at) => Math.fround(1 + Math.sin(at) / 300));
      const product = Math.fround(factors.reduce((all, factor) => all * factor, 1));
      const own = scatterReduce(tensor([1]), 0, tensor(factors.map(() => 0n)), tensor(factors), "prod");
      expect(Math.abs((own.item() as number) - product)).toBeLessThanOrEqual(product * 2 ** -23);
    }));
});

testVariants(import.meta.path, "on metal (products by|NaN)");
