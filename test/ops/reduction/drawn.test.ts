/**
 * Sums of bytes, counts, and norms of any order on the cpu backend: drawn sizes, axes and layouts with each instruction
 * set, compared with loops over the elements. Medians of expanded tensors.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import {
  countNonzero,
  type DType,
  expand,
  median,
  nanmedian,
  norm,
  sum,
  type Tensor,
  tensor,
  toDType,
  withBackend,
  withStrict,
} from "../../../src/index.ts";
import { type Block, expandedBlock, layouts, makeBlock, place, Random, rounder } from "../samples.ts";

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => configure(native, "isa", initial));

const numbers = (x: Tensor): number[] => Array.from(toDType(x, "float64").dataSync() as Float64Array);

/** Results along an axis. */
function along({ shape, values }: Pick<Block, "shape" | "values">, axis: number, of: (slice: number[]) => number) {
  const inner = shape.slice(axis + 1).reduce((product, size) => product * size, 1);
  const outer = shape.slice(0, axis).reduce((product, size) => product * size, 1);
  const results: number[] = [];
  for (let block = 0; block < outer; block++)
    for (let column = 0; column < inner; column++)
      results.push(
        of(Array.from({ length: shape[axis] }, (_, at) => Number(values[(block * shape[axis] + at) * inner + column]))),
      );
  return results;
}

/** Three axes, one of which may exceed the elements that narrow lanes hold, or the rows of a task. */
function drawnShape(random: Random): [number[], number] {
  const shape = [random.integer(1, 7), random.integer(1, 9), random.integer(1, 40)];
  const axis = random.integer(0, 2);
  const longest = random.next() < 0.3 ? 9000 : 300;
  return [shape.map((size, at) => (at === axis ? random.integer(1, longest) : Math.min(size, 12))), axis];
}

/** Draws a tensor of a dtype, with its elements. */
function drawn(random: Random, dtype: DType, low: number, high: number): { x: Tensor; block: Block; axis: number } {
  const [shape, axis] = drawnShape(random);
  const layout = layouts[random.integer(0, layouts.length - 1)];
  const made = makeBlock({ shape, values: { low, high } }, dtype, random);
  const block = layout === "expanded" ? expandedBlock(made) : made;
  return { x: place(block, layout, "cpu", random), block, axis };
}

test.each([3, 200, 5000])("the median of %d repetitions of a number is the number", (count) =>
  withBackend("cpu", () => {
    const column = tensor([[3], [-2], [0.5], [7], [1], [-9]]);
    const expanded = expand(column, [6, count]);
    for (const of of [median, nanmedian]) {
      expect(numbers(of(expanded, 1).values)).toEqual([3, -2, 0.5, 7, 1, -9]);
      expect(numbers(of(expanded, 0).values)).toEqual(new Array<number>(count).fill(0.5));
    }
  }),
);

describe.each([...isas])("with %s", (isa) => {
  const rounds = 25;
  const on = (body: () => void): void => {
    configure(native, "isa", isa);
    withStrict(true, () => withBackend("cpu", body));
  };

  test.each([
    ["uint8", 200, 255],
    ["int8", -128, -100],
    ["int8", -128, 127],
    ["bool", 0, 1],
  ] as const)("sums and counts of %s from %d to %d", (dtype, low, high) =>
    on(() => {
      const random = new Random(low * 7 + high);
      for (let round = 0; round < rounds; round++) {
        const { x, block, axis } = drawn(random, dtype, low, high);
        const about = `[${block.shape}] along ${axis}`;
        expect([about, numbers(sum(x, axis))]).toEqual([about, along(block, axis, total)]);
        expect([about, numbers(countNonzero(x, axis))]).toEqual([about, along(block, axis, nonzero)]);
      }
    }),
  );

  test.each(["float64", "float32", "float16", "bfloat16"] as const)("norms of any order of %s", (dtype) =>
    on(() => {
      const random = new Random(31);
      const round = rounder(dtype);
      // the roundings of a power and of its root; sums are in float64
      const relative = { float64: 2 ** -47, float32: 2 ** -23, float16: 2 ** -10, bfloat16: 2 ** -7 }[dtype];
      for (let time = 0; time < rounds; time++) {
        const { x, block, axis } = drawn(random, dtype, -2, 2);
        const p = [3, 4, 7, 16, 17, 0.5, 1.5, 2.7, -1, -2.5][time % 10];
        const expected = along(block, axis, (slice) => total(slice.map((value) => Math.abs(value) ** p)) ** (1 / p));
        for (const [at, value] of numbers(norm(x, p, axis)).entries())
          if (!(Math.abs(value - expected[at]) <= relative * expected[at] || value === round(expected[at])))
            expect(`p ${p} of [${block.shape}] along ${axis}: ${value}`).toBe(`${expected[at]}`);
      }
    }),
  );
});

const total = (slice: readonly number[]): number => slice.reduce((all, value) => all + value, 0);
const nonzero = (slice: readonly number[]): number => slice.filter((value) => value !== 0).length;
