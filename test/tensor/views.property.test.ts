/** Views of views: their elements, that they share memory, and that a copy is made only if no strides describe them. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { reshape, viewStrides } from "../../src/ops/view/reshape.ts";
import { collapse, elementCount, isRowMajor, rowMajorStrides, type Shape } from "../../src/tensor/shape.ts";
import { counted, offsets, places, type Step, shapes, steps, viewAfter } from "./arbitraries.ts";

type Nested = number | Nested[];

const leaves = (value: Nested): number[] => (Array.isArray(value) ? value.flatMap(leaves) : [value]);

/** Array.prototype.slice on one axis of nested arrays, and every step-th element of the result. */
function sliceNested(value: Nested, dim: number, { start, end, step }: Extract<Step, { kind: "slice" }>): Nested {
  if (dim > 0)
    return (value as Nested[]).map((item) => sliceNested(item, dim - 1, { kind: "slice", dim, start, end, step }));
  return (value as Nested[]).slice(start, end).filter((_, index) => index % step === 0);
}

test("slices of slices equal those of JavaScript's arrays", () => {
  const onlySlices = steps.map((list) => list.filter((step) => step.kind === "slice"));
  fc.assert(
    fc.property(shapes(3), onlySlices, (shape, list) => {
      fc.pre(shape.length > 0 && shape.every((size) => size > 0)); // nested arrays have no shape after an empty axis
      const x = counted(shape);
      const expected = list.reduce<Nested>(
        (value, step) => sliceNested(value, step.dim % shape.length, step),
        x.toArray() as Nested,
      );
      const view = viewAfter(x, list);
      expect(view.storage).toBe(x.storage);
      expect(view.toArray() as Nested).toEqual(expected);
    }),
    { numRuns: 500 },
  );
});

test("a view reads the elements at its offsets, by every way of reading", async () => {
  await fc.assert(
    fc.asyncProperty(shapes(4), steps, async (shape, list) => {
      const view = viewAfter(counted(shape), list);
      const expected = offsets(view); // element k of the storage is k
      expect([...view.dataSync()]).toEqual(expected);
      expect([...(await view.data())]).toEqual(expected);
      expect(leaves(view.toArray() as Nested)).toEqual(expected);
    }),
    { numRuns: 300 },
  );
});

/** A size split into up to four factors, with ones between them. */
const factored = (size: number): fc.Arbitrary<number[]> =>
  fc.array(fc.nat(11), { minLength: 1, maxLength: 4 }).map((choices) => {
    let remainder = size;
    const factors = choices.map((choice) => {
      const divisors = Array.from({ length: remainder }, (_, index) => index + 1).filter(
        (divisor) => remainder % divisor === 0,
      );
      const factor = divisors[choice % divisors.length];
      remainder /= factor;
      return factor;
    });
    return [...factors, remainder];
  });

/** Determines by trial whether elements at these offsets have one stride for each axis of a shape. */
function haveStrides(at: readonly number[], shape: Shape): boolean {
  const row = rowMajorStrides(shape);
  const strides = shape.map((size, axis) => (size > 1 ? at[row[axis]] - at[0] : 0));
  return places(shape).every(
    (place, index) => place.reduce((sum, one, axis) => sum + one * strides[axis], at[0]) === at[index],
  );
}

test("reshape keeps the order, and copies only if no strides describe the result", () => {
  let copies = 0;
  let views = 0;
  fc.assert(
    fc.property(
      fc
        .tuple(shapes(4), steps)
        .map(([shape, list]) => viewAfter(counted(shape), list))
        .filter(({ size }) => size > 0)
        .chain((view) => fc.tuple(fc.constant(view), factored(view.size))),
      ([view, shape]) => {
        const at = offsets(view);
        const result = reshape(view, shape);
        expect([...result.dataSync()]).toEqual(at);
        expect([result.shape as unknown]).toEqual([shape]);
        const possible = haveStrides(at, shape);
        expect(result.storage === view.storage).toBe(possible);
        expect(viewStrides(view, shape) !== null).toBe(possible);
        if (possible) views++;
        else copies++;
      },
    ),
    { numRuns: 1000 },
  );
  expect(Math.min(copies, views)).toBeGreaterThan(20); // both copies and views were tried
});

test("isRowMajor tells whether the elements are contiguous", () => {
  fc.assert(
    fc.property(shapes(4), steps, (shape, list) => {
      const view = viewAfter(counted(shape), list);
      const dense = offsets(view).every((at, index) => at === view.offset + index);
      expect(isRowMajor(view.shape, view.strides)).toBe(dense);
    }),
    { numRuns: 500 },
  );
});

test("a collapsed loop nest visits the same elements in the same order, in every operand", () => {
  fc.assert(
    fc.property(shapes(4), steps, steps, (shape, first, second) => {
      const a = viewAfter(counted(shape), first);
      fc.pre(a.size > 0);
      const b = viewAfter(counted(shape), second);
      const operands = b.shape.join() === a.shape.join() ? [a, b] : [a];
      const nest = collapse(
        a.shape,
        operands.map(({ strides }) => strides),
      );
      expect(nest.shape.length).toBeLessThanOrEqual(a.rank);
      expect(elementCount(nest.shape)).toBe(a.size);
      for (const [index, operand] of operands.entries())
        expect(offsets({ shape: nest.shape, strides: nest.strides[index], offset: operand.offset })).toEqual(
          offsets(operand),
        );
    }),
    { numRuns: 500 },
  );
});
