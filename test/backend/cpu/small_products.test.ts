/**
 * Matrix products of sizes that are drawn: few or short sums, narrow results, batches, rows whose addresses share sets
 * of a cache, and sums long enough to be divided. On every instruction set, against sums in float64.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { Random } from "../../ops/samples.ts";
import { multiply } from "../../support/cpu-matmul.ts";
import {
  type Case,
  expectRight,
  type Layout,
  nth,
  operandLayouts,
  randomCase,
  randomOperand,
  resultLayouts,
  useDefaults,
} from "../../support/drawn-products.ts";
import { elementTypes } from "../../support/elements.ts";
import { repeats } from "../../support/repeats.ts";

const { native } = cpuLibrary();
afterAll(useDefaults);

const dtypes = ["float32", "float64"] as const;
const MOST_TERMS = 40_000;

/** Draws m, n and k of any magnitudes, with m · n · k of at most `most`. */
function drawnSizes(random: Random, most: number): [m: number, n: number, k: number] {
  for (;;) {
    const sizes = [150, 300, 700].map((size) => Math.floor(size ** random.next()));
    if (sizes.reduce((all, size) => all * size, 1) <= most) return sizes as [number, number, number];
  }
}

/** Draws a product: half of the operands in rows or columns, the others in any layout. */
function drawnCase(random: Random, batchShape: readonly number[] = []): Case {
  const layoutOf = <Own extends Layout>(all: readonly Own[]): Own =>
    nth(random.next() < 0.5 ? all.slice(0, 2) : all, random.integer(0, all.length - 1));
  const sizes = drawnSizes(random, MOST_TERMS / batchShape.reduce((all, size) => all * size, 1));
  const layouts = [layoutOf(operandLayouts), layoutOf(operandLayouts), layoutOf<Layout>(resultLayouts)] as const;
  const given = randomCase(nth(dtypes, random.integer(0, 1)), sizes, layouts, batchShape);
  if (random.next() < 0.6) return given;
  const input = randomOperand(elementTypes[given.dtype], sizes[0], sizes[1], layoutOf(operandLayouts), batchShape);
  const [alpha, beta] = nth([[1, 1], [1, -0.5], [2, 1]] as const, random.integer(0, 2)); // biome-ignore format: short
  return { ...given, input: random.next() < 0.2 ? given.out : input, alpha, beta };
}

const describeCase = ({ dtype, m, n, k, batchShape, a, b, out }: Case): string =>
  `${dtype} ${batchShape} of ${m}x${k} (${a.rowStride}, ${a.columnStride}) times ${k}x${n} (${b.rowStride}, ` +
  `${b.columnStride}) to (${out.rowStride}, ${out.columnStride})`;

describe.each([...Array(6).keys()])("small products are correct, seed %d", (seed) => {
  test("small products are correct", () => {
    const random = new Random(100 + seed);
    for (let count = 0; count < repeats({ usual: 40, all: 200 }); count++) {
      const given = drawnCase(random);
      expectRight(given, describeCase(given));
    }
  });

  test("few sums of adjacent numbers are correct", () => {
    const random = new Random(300 + seed);
    for (let count = 0; count < repeats({ usual: 30, all: 150 }); count++) {
      const sizes = [random.integer(1, 14), random.integer(1, 8), Math.floor(600 ** random.next())] as const;
      const result = nth<Layout>(resultLayouts, random.integer(0, resultLayouts.length - 1));
      const batchShape = random.next() < 0.5 ? [] : [random.integer(1, 5)];
      const given = randomCase(nth(dtypes, random.integer(0, 1)), sizes, ["rows", "columns", result], batchShape);
      expectRight(given, describeCase(given));
    }
  });

  test("batches of small products are correct", () => {
    const random = new Random(200 + seed);
    for (let count = 0; count < repeats({ usual: 15, all: 60 }); count++) {
      const given = drawnCase(random, [random.integer(2, 40)]);
      expectRight(given, describeCase(given));
    }
  });
});

/** Computes the product with each number of threads, and returns a hash of each result. */
const bitsOn = (threads: readonly string[], given: Case): unknown[] => {
  configure(native, "products", "own");
  const results = threads.map((count) => {
    configure(native, "threads", count);
    const storage = given.out.storage.slice();
    multiply({ ...given, out: { ...given.out, storage } });
    return Bun.hash(storage.buffer);
  });
  configure(native, "threads", "auto");
  return results;
};

// Rows 4 KB apart; long sums of few numbers; narrow results; batches of dot products.
test.each([
  { dtype: "float32", size: [30, 40, 1024], lies: ["rows", "rows"] },
  { dtype: "float64", size: [20, 33, 1024], lies: ["rows", "columns"] },
  { dtype: "float32", size: [40, 9, 2048], lies: ["rows", "rows"] },
  { dtype: "float32", size: [33, 65, 1000], lies: ["rows", "rows"] },
  { dtype: "float64", size: [20, 20, 5001], lies: ["columns", "columns"] },
  { dtype: "float32", size: [3, 17, 40_000], lies: ["rows", "columns"] },
  { dtype: "float32", size: [9000, 5, 30], lies: ["rows", "rows"] },
  { dtype: "float32", size: [3, 5000, 40], lies: ["columns", "rows"] },
] as const)("any number of threads gives the same bits: $dtype $size of $lies", ({ dtype, size, lies }) => {
  const given = randomCase(dtype, size, [...lies, "rows"]);
  if (size[0] * size[1] <= 2000) expectRight(given, "on all threads");
  expect(new Set(bitsOn(["1", "2", "3", "8"], given)).size).toBe(1);
});

test("dot products in a batch are correct for lengths around multiples of a vector's", () => {
  for (const dtype of dtypes)
    for (const k of [1, 3, 15, 16, 17, 31, 63, 64, 65, 100, 513]) {
      const given = randomCase(dtype, [1, 1, k], ["rows", "columns", "rows"], [7]);
      expectRight(given, `${dtype} ${k}`);
      expectRight({ ...given, alpha: 3 }, `${dtype} ${k}, tripled`);
    }
});
