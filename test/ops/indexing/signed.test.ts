/** take, put and takeAlongDim: indices of −n to n − 1 as in PyTorch, and no others, on every backend. */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { put, take, takeAlongDim, tensor } from "../../../src/ops/index.ts";
import type { IndexDType } from "../../../src/ops/indexing/indices.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { repeats } from "../../support/repeats.ts";
import { tested } from "../run.ts";

const shaped = (values: readonly number[], shape: readonly number[]) => tensor(values as number[]).reshape([...shape]);
const indices = (values: readonly number[], shape: readonly number[], dtype: IndexDType): Tensor<IndexDType> =>
  tensor(values as number[], { dtype }).reshape([...shape]);
const counted = (length: number, start = 1): number[] => Array.from({ length }, (_, at) => start + at);
const numbers = (x: Tensor): number[] => Array.from(x.reshape([x.size]).dataSync() as Float32Array, Number);
const fill = (length: number): number[] => new Array<number>(length).fill(0);

/** The drawn index, mostly in range. */
const drawn = fc
  .record({
    shape: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 3 }),
    count: fc.integer({ min: 1, max: 6 }),
    parts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 6, maxLength: 6 }),
    farther: fc.constantFrom(0, 0, 1),
    dtype: fc.constantFrom<IndexDType>("int64", "int32", "int8"),
  })
  .map(({ shape, count, parts, farther, dtype }) => {
    const size = shape.reduce((all, own) => all * own, 1);
    const of = (n: number): number[] =>
      parts.slice(0, count).map((part) => Math.floor(part * (2 * n + 2 * farther) * 0.999) - n - farther);
    return { shape, size, of, dtype };
  });

/** Returns the range and the index that the error must name; undefined if all are in range. */
function problem(name: string, given: readonly number[], n: number): RegExp | undefined {
  const wrong = given.findIndex((own) => own < -n || own >= n);
  if (wrong < 0) return undefined;
  return new RegExp(
    `^\\[${name}\\] expected indices of ${-n} to ${n - 1}, got ${given[wrong]} at \\[(0, )*${wrong}\\b`,
  );
}

describe.each(tested)("negative indices on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));
  const draw = (body: (own: typeof drawn extends fc.Arbitrary<infer T> ? T : never) => void, seed: number) =>
    fc.assert(
      fc.property(drawn, (own) => on(() => body(own))),
      { numRuns: repeats({ usual: 25, all: 400 }), seed },
    );

  test("take and its gradient accept negative indices", () => {
    draw(({ shape, size, of, dtype }) => {
      const given = of(size);
      const x = shaped(counted(size), shape);
      x.requiresGrad = true;
      const run = () => {
        const result = take(x, indices(given, [given.length], dtype));
        return [result, grad([result.mul(result).sum() as Tensor], [x])[0]].map(numbers);
      };
      const wrong = problem("take", given, size);
      if (wrong) return void expect(run).toThrow(wrong);
      const places = given.map((own) => (own + size) % size);
      const gradient = fill(size);
      for (const place of places) gradient[place] += 2 * (place + 1);
      expect(run()).toEqual([places.map((place) => place + 1), gradient]);
    }, 1);
  });

  test.each([false, true])("put and its gradients accept negative indices, accumulate %p", (accumulate) => {
    draw(({ shape, size, of, dtype }) => {
      const given = of(size);
      const x = shaped(counted(size), shape);
      const source = shaped(counted(given.length, 100), [given.length]);
      x.requiresGrad = true;
      source.requiresGrad = true;
      const run = () => {
        const result = put(x, indices(given, [given.length], dtype), source, { accumulate });
        const gradients = grad([result.mul(shaped(counted(size), shape)).sum() as Tensor], [x, source]);
        return [result, ...gradients].map((own) => numbers(own));
      };
      const wrong = problem("put", given, size);
      if (wrong) return void expect(run).toThrow(wrong);
      const [values, ofX, ofSource] = [counted(size), counted(size), fill(given.length)];
      const last = new Map<number, number>();
      for (const [at, own] of given.entries()) {
        const place = (own + size) % size;
        values[place] = (accumulate ? values[place] : 0) + 100 + at;
        if (!accumulate) ofX[place] = 0;
        const before = last.get(place);
        if (!accumulate && before !== undefined) ofSource[before] = 0;
        ofSource[at] = place + 1;
        last.set(place, at);
      }
      expect(run()).toEqual([values, ofX, ofSource]);
    }, 2);
  });

  test("takeAlongDim and its gradient accept negative indices", () => {
    draw(({ shape, size, of, dtype }) => {
      const n = shape.at(-1)!;
      const given = of(n);
      const x = shaped(counted(size), shape);
      x.requiresGrad = true;
      const run = () => {
        const index = indices(given, [...shape.slice(0, -1).map(() => 1), given.length], dtype);
        const result = takeAlongDim(x, index, { dim: -1 });
        return [result, grad([result.mul(result).sum() as Tensor], [x])[0]].map(numbers);
      };
      const wrong = problem("takeAlongDim", given, n);
      if (wrong) return void expect(run).toThrow(wrong);
      const gradient = fill(size);
      const places = Array.from({ length: size / n }, (_, row) => given.map((own) => row * n + ((own + n) % n))).flat();
      for (const place of places) gradient[place] += 2 * (place + 1);
      expect(run()).toEqual([places.map((place) => place + 1), gradient]);
    }, 3);
  });
});
