/** Dot products of many short rows, which vectors compute together, compared with sums in float64. */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../src/backend/policy.ts";
import { expand, linalg, type Tensor, tensor, toDType } from "../../src/index.ts";
import { mulberry32 } from "./random.ts";

const layouts = ["contiguous", "sliced", "expanded", "one row"] as const;
type Layout = (typeof layouts)[number];

/** Draws rows of a layout: every second row of a larger tensor, or one row that repeats. */
function rows(
  random: () => number,
  [count, length]: readonly [number, number],
  layout: Layout,
  dtype: "float32" | "float64",
): Tensor {
  const stored = layout === "contiguous" ? count : layout === "sliced" ? 2 * count : 1;
  const numbers = new Float64Array(stored * length).map(() => random() * 2 - 1);
  const all = toDType(tensor(numbers), dtype).reshape([stored, length]) as Tensor;
  if (layout === "sliced") return all.reshape([count, 2, length]).select(1, 0) as Tensor;
  return layout === "expanded" ? (expand(all, [count, length]) as Tensor) : all;
}

describe("vecdot of short rows", () => {
  for (const dtype of ["float32", "float64"] as const)
    test(`${dtype} rows of drawn sizes and layouts have accurate dot products`, () => {
      withBackend("cpu", () => {
        const random = mulberry32(dtype.length);
        const epsilon = dtype === "float32" ? 2 ** -24 : 2 ** -53;
        for (let time = 0; time < 80; time++) {
          const count = 2 + Math.floor(random() * (random() < 0.2 ? 3000 : 40));
          // around whole vectors, and around the longest row of the kernel (512)
          const length = random() < 0.2 ? 508 + Math.floor(random() * 9) : 1 + Math.floor(random() * 70);
          const drawLayout = (): Layout => layouts[Math.floor(random() * layouts.length)];
          const x = rows(random, [count, length], "contiguous", dtype);
          const y = rows(random, [count, length], drawLayout(), dtype);
          const [left, right] = random() < 0.5 ? [x, y] : [y, x];
          const found = linalg.vecdot(left, right).toArray() as number[];
          const wide = (each: Tensor): number[][] => toDType(each, "float64").toArray() as number[][];
          const [a, b] = [wide(x), wide(expand(y, [count, length]) as Tensor)];
          for (const [at, row] of a.entries()) {
            const terms = row.map((value, k) => value * b[at][k]);
            const exact = terms.reduce((sum, term) => sum + term, 0);
            const size = terms.reduce((sum, term) => sum + Math.abs(term), 0);
            expect(Math.abs(found[at] - exact)).toBeLessThanOrEqual((2 * Math.sqrt(length) + 2) * epsilon * size);
          }
        }
      });
    });
});
