/** The kernels of LU: under the checker, on the device's numeric variants, and their memory traffic. */
import { describe, expect, test } from "bun:test";
import { luFactorEx } from "../../src/linalg/lu/factor.ts";
import { invEx } from "../../src/linalg/lu/inverse.ts";
import { luSolve, solveEx } from "../../src/linalg/lu/solve.ts";
import { stack } from "../../src/ops/join/cat.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { difference, families, identity, type Matrix, norm1, product, rounded } from "./matrices.ts";
import { on, places, ratio, THRESHOLD, toTensor } from "./run.ts";
import { watched } from "./traffic.ts";
import { checked, testVariants } from "./variants.ts";

/** One dispatch, with the numbers that it moved. */
function moved<Result>(body: () => Result): { read: number; written: number; result: Result } {
  const { dispatches, read, written, result } = watched(body);
  expect(dispatches).toBe(1);
  return { read: read / 4, written: written / 4, result };
}

const makers = Object.values(families);
const matrices = (count: number, rows: number, columns: number): Matrix[] =>
  Array.from({ length: count }, (_, at) => rounded(makers[at % makers.length](rows, columns, at)));
const batchOf = (all: readonly Matrix[]): Tensor =>
  on("metal", true, () => stack(all.map((own) => toTensor(own, "float32"))));

const NAME = "well-conditioned systems";
testVariants(import.meta.path, NAME);

describe.skipIf(!places.some(({ backend }) => backend === "metal"))("LU on metal moves each element once", () => {
  test.each([
    [1, 1],
    [2, 5],
    [8, 8],
    [9, 3],
    [17, 31],
    [33, 64],
    [64, 20],
    [64, 64],
  ])("%d x %d: LU moves each element once", (rows, columns) => {
    for (const count of [1, rows > 8 ? 3 : 40]) {
      const steps = Math.min(rows, columns);
      const a = batchOf(matrices(count, rows, columns));
      const { read, written } = moved(() => luFactorEx(a));
      expect({ read, written }).toEqual({
        read: count * rows * columns,
        written: count * (rows * columns + steps + 1),
      });
    }
  });

  test.each([1, 2, 7, 8, 9, 16, 17, 32, 33, 64])("systems of %d: solve moves each element once", (size) => {
    for (const columns of [1, 3, 32, 33, 70]) {
      const count = size > 8 ? 2 : 40;
      const [square, sides] = [count * size * size, count * size * columns];
      const [a, b] = [batchOf(matrices(count, size, size)), batchOf(matrices(count, size, columns))];
      const solution = moved(() => solveEx(a, b));
      expect([solution.read, solution.written]).toEqual([square + sides, sides + count]);
      if (columns === 1) {
        const inverse = moved(() => invEx(a));
        expect([inverse.read, inverse.written]).toEqual([square, square + count]);
        a.requiresGrad = true;
        const kept = moved(() => solveEx(a, b));
        expect([kept.read, kept.written]).toEqual([square + sides, sides + count + square + count * size]);
        a.requiresGrad = false;
      }
      const { lu, pivots } = on("metal", true, () => luFactorEx(a));
      for (const adjoint of [false, true]) {
        const own = moved(() => luSolve(lu, pivots, b, { adjoint }));
        expect([own.read, own.written]).toEqual([square + count * size + sides, sides]);
      }
    }
  });

  test("larger matrices take three dispatches for 32 columns, regardless of the batch", () => {
    const counts = [1, 3].map((count) => {
      const [a, b] = [batchOf(matrices(count, 100, 100)), batchOf(matrices(count, 100, 3))];
      const launched = (body: () => unknown): number => watched(body).dispatches;
      return [launched(() => luFactorEx(a)), launched(() => solveEx(a, b)), launched(() => invEx(a))];
    });
    const steps = 1 + 3 * 3 + 2; // a copy, 3 for each block, and 2 for the last one, which has no rows below
    expect(counts).toEqual([
      [steps, steps + 4, steps + 4],
      [steps, steps + 4, steps + 4],
    ]);
  });

  test(NAME, () => {
    for (const name of ["random", "orthogonal", "clustered values", "near overflow", "near underflow"])
      for (const size of [1, 5, 8, 16, 31, 33, 64, 70]) {
        const [a, b] = [rounded(families[name](size, size, 3)), rounded(families["random"](size, 3, 5))];
        const { x, inverse } = checked(() =>
          on("metal", true, () => ({
            x: solveEx(toTensor(a, "float32"), toTensor(b, "float32")).result.dataSync(),
            inverse: invEx(toTensor(a, "float32")).inverse.dataSync(),
          })),
        );
        const matrixOf = (values: ArrayLike<unknown>, columns: number): Matrix => ({
          rows: size,
          columns,
          values: Float64Array.from(values as ArrayLike<number>),
        });
        const [solution, own] = [matrixOf(x, 3), matrixOf(inverse, size)];
        const residual = norm1(difference(product(a, solution), b));
        expect(ratio(residual, size * norm1(a) * norm1(solution), "float32", `solve, ${name}`)).toBeLessThan(THRESHOLD);
        const rest = norm1(difference(identity(size), product(a, own)));
        expect(ratio(rest, size * norm1(a) * norm1(own), "float32", `inv, ${name}`)).toBeLessThan(THRESHOLD);
      }
  });
});
