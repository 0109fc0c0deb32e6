/** Functions of rows of every length from 1 to 70, and of some longer ones, compared with loops in float64. */
import { describe, expect, test } from "bun:test";
import {
  cosineEmbeddingLoss,
  cosineSimilarity,
  type DType,
  dist,
  multiMarginLoss,
  pairwiseDistance,
  renorm,
  type Tensor,
  tensor,
  toDType,
  tripletMarginLoss,
  withBackend,
} from "../../../src/index.ts";
import { testSameBits } from "../same_bits.ts";
import { hash, makeBlock, place, Random } from "../samples.ts";

type Row = readonly number[];
const listOf = (x: Tensor): number[] => [...(toDType(x, "float64").dataSync() as Float64Array)];
const added = (values: Row): number => values.reduce((sum, value) => sum + value, 0);
const dot = (a: Row, b: Row): number => added(a.map((value, at) => value * b[at]!));
const apart = (a: Row, b: Row): number => Math.sqrt(added(a.map((value, at) => (value - b[at]! + 1e-6) ** 2)));
const cosine = (a: Row, b: Row): number => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
// cosineEmbeddingLoss adds 1e-12 to the squares
const embedding = (a: Row, b: Row): number => dot(a, b) / Math.sqrt((dot(a, a) + 1e-12) * (dot(b, b) + 1e-12));
const lengths = [...Array.from({ length: 70 }, (_, at) => at + 1), 127, 200, 1030];

function rowsOf(dtype: DType, width: number, random: Random, layout: "contiguous" | "strided") {
  const block = makeBlock({ shape: [3, width], values: { low: -2, high: 2 } }, dtype, random);
  const rows = [0, 1, 2].map((row) => block.values.slice(row * width, (row + 1) * width));
  return [place(block, layout, "cpu", random), rows] as const;
}

function renormed(row: Row, p: number): number[] {
  const norm = added(row.map((value) => Math.abs(value) ** p)) ** (1 / p);
  return row.map((value) => (norm > 1 ? value / (norm + 1e-7) : value));
}

/** max(margin − x[y] + x[c], 0) of each class c, without the target y's */
const shortfalls = (row: Row, target: number): number[] =>
  row.map((value, at) => (at === target ? 0 : Math.max(0, 1 - row[target]! + value)));

function checkClose(found: Row, expected: Row, tolerance: number): void {
  expect(found.length).toBe(expected.length);
  for (const [at, value] of found.entries())
    expect(Math.abs(value - expected[at]!)).toBeLessThanOrEqual(tolerance * Math.max(1, Math.abs(expected[at]!)));
}

describe("rows on cpu", () => {
  test.each([
    ["float64", 1e-12],
    ["float32", 2e-6],
    ["bfloat16", 2 ** -7],
  ] as const)("%s", (dtype, tolerance) =>
    withBackend("cpu", () => {
      const random = new Random(hash(dtype));
      for (const [at, width] of lengths.entries()) {
        const layout = at % 2 === 0 ? "contiguous" : "strided";
        const [[a, first], [b, second], [c, third]] = [0, 1, 2].map(() => rowsOf(dtype, width, random, layout));
        const pairs = first.map((row, row_) => [row, second[row_]!, third[row_]!] as const);
        const none = { reduction: "none" } as const;
        checkClose(
          listOf(pairwiseDistance(a, b)),
          pairs.map(([x, y]) => apart(x, y)),
          tolerance,
        );
        checkClose(
          listOf(cosineSimilarity(a, b)),
          pairs.map(([x, y]) => cosine(x, y)),
          tolerance,
        );
        const all = pairs.flatMap(([x, y]) => x.map((value, i) => value - y[i]!));
        checkClose([Number(dist(a, b).item())], [Math.sqrt(dot(all, all))], tolerance);
        const losses = pairs.map(([x, y, z]) => Math.max(0, apart(x, y) - apart(x, z) + 1));
        checkClose(listOf(tripletMarginLoss(a, b, c, none)), losses, 2 * tolerance);
        const sides = [1, -1, 1];
        const embedded = pairs.map(([x, y], row) =>
          sides[row]! > 0 ? 1 - embedding(x, y) : Math.max(0, embedding(x, y)),
        );
        checkClose(listOf(cosineEmbeddingLoss(a, b, tensor(sides), none)), embedded, tolerance);
        for (const p of [1, 2, 3])
          checkClose(
            listOf(renorm(a, p, 0, 1)),
            first.flatMap((x) => renormed(x, p)),
            tolerance,
          );
        const targets = first.map(() => random.integer(0, width - 1));
        for (const p of [1, 2] as const) {
          const margins = first.map((x, row) => added(shortfalls(x, targets[row]!).map((s) => s ** p)) / width);
          checkClose(listOf(multiMarginLoss(a, tensor(targets.map(BigInt)), { ...none, p })), margins, 4 * tolerance);
        }
      }
    }),
  );

  test("the gradient of multiMarginLoss", () =>
    withBackend("cpu", () => {
      const random = new Random(8);
      for (const width of lengths)
        for (const p of [1, 2] as const) {
          const [x, rows] = rowsOf("float64", width, random, "contiguous");
          x.requiresGrad = true;
          const targets = rows.map(() => random.integer(0, width - 1));
          multiMarginLoss(x, tensor(targets.map(BigInt)), { p, reduction: "sum" }).backward();
          const slopes = rows.flatMap((row, at) => {
            const of = shortfalls(row, targets[at]!).map((s) => (p === 1 ? Math.sign(s) : 2 * s) / width);
            return of.with(targets[at]!, -added(of));
          });
          checkClose(listOf(x.grad!), slopes, 1e-12);
        }
    }));
});

describe("rows have the same bits", () => {
  testSameBits((backend) => {
    const random = new Random(21);
    return [1, 2, 3].flatMap(() => {
      const [count, width] = [random.integer(1, backend === "cpu" ? 4000 : 40), random.integer(1, 60)];
      const [a, b, c] = [1, 2, 3].map(() =>
        place(makeBlock({ shape: [count, width] }, "float32", random), "contiguous", backend, random),
      );
      const targets = tensor(Array.from({ length: count }, () => BigInt(random.integer(0, width - 1))));
      const results = [pairwiseDistance(a!, b!), cosineSimilarity(a!, b!), tripletMarginLoss(a!, b!, c!)];
      return [...results, renorm(a!, 2, 0, 1), multiMarginLoss(a!, targets)].map((result) => result.dataSync());
    });
  });
});
