/** Least squares: residuals orthogonal to the range (after dqrt17), consistent systems (dqrt16), least norm. */
import { describe, expect, test } from "bun:test";
import { LinAlgError, type ShapeError } from "../../src/core/errors.ts";
import { type LstsqDriver, lstsq } from "../../src/linalg/qr/lstsq.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { zeros } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { add, mul } from "../../src/ops/elementwise/arithmetic.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { matmul } from "../../src/ops/matmul/matmul.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import { select } from "../../src/ops/view/slice.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { checkGradients, leaf } from "./gradients.ts";
import { difference, families, type Matrix, matrix, norm1, product, transposed } from "./matrices.ts";
import { randomNumbers } from "./random.ts";
import { inDType, on, places, type RealDType, ratio, THRESHOLD, toMatrix, toTensor } from "./run.ts";
import { checked } from "./variants.ts";

const shapes: readonly (readonly [number, number])[] = [
  ...([
    [1, 1],
    [2, 1],
    [1, 2],
    [3, 3],
    [5, 3],
    [3, 5],
    [9, 9],
    [16, 5],
    [5, 16],
    [33, 17],
    [17, 33],
    [40, 40],
  ] as const),
];
/** The smaller shapes, for metal, where svd is tested separately. */
const few = shapes.filter(([rows, columns]) => rows + columns < 20);
const largeShapes: readonly (readonly [number, number])[] = [
  [129, 100],
  [100, 129],
  [300, 70],
];
/** Small whole numbers, whose products are exact in float32. */
const whole = (rows: number, columns: number, seed: number): Matrix => {
  const values = randomNumbers(rows * columns, seed).map((value) => Math.max(-3, Math.min(3, Math.round(2 * value))));
  return { rows, columns, values };
};

/** X without its projection onto the row space of C, whose rows are independent. */
function outsideRows(x: Matrix, c: Matrix): Matrix {
  const rows = Array.from({ length: c.rows }, (_, i) => c.values.slice(i * c.columns, (i + 1) * c.columns));
  const dot = (a: Float64Array, b: Float64Array): number => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const without = (own: Float64Array, others: readonly Float64Array[]): Float64Array => {
    let left = own;
    for (const other of [...others, ...others]) {
      const factor = dot(left, other);
      left = left.map((value, i) => value - factor * other[i]);
    }
    return left;
  };
  const basis: Float64Array[] = [];
  for (const row of rows) {
    const left = without(row, basis);
    const length = Math.sqrt(dot(left, left));
    basis.push(left.map((value) => value / length));
  }
  const columns = transposed(x);
  const parts = Array.from({ length: x.columns }, (_, j) =>
    without(columns.values.slice(j * x.rows, (j + 1) * x.rows), basis),
  );
  return matrix(x.rows, x.columns, (i, j) => parts[j][i]);
}

function checkOrthogonal(a: Matrix, x: Matrix, b: Matrix, dtype: RealDType, of: string): void {
  const residual = difference(b, product(a, x));
  const scale = norm1(transposed(a)) * (norm1(b) + norm1(a) * norm1(x)) * Math.max(a.rows, a.columns);
  expect(ratio(norm1(product(transposed(a), residual)), scale, dtype, `${of}, Aᵀ(B - AX)`)).toBeLessThan(THRESHOLD);
}

for (const { backend, dtype } of places) {
  describe(`lstsq, ${backend} ${dtype}`, () => {
    const watched = backend === "metal" ? checked : <Result>(body: () => Result): Result => body();
    const solve = (a: Matrix, b: Matrix, driver: LstsqDriver) =>
      watched(() => on(backend, true, () => lstsq(toTensor(a, dtype), toTensor(b, dtype), { driver })));
    const all = backend === "cpu" ? [...shapes, ...largeShapes] : shapes;

    for (const [family, make] of Object.entries(families))
      test(`lstsq of ${family} is accurate`, () => {
        for (const [rows, columns] of all.filter(([m]) => m < 50 || family === "random")) {
          const a = inDType(make(rows, columns, rows + 7 * columns), dtype);
          const b = inDType(families.random(rows, 2, 5), dtype);
          const { solution, rank, residuals } = solve(a, b, "gelsy");
          const x = toMatrix(solution);
          if (!x.values.every(Number.isFinite)) continue; // the solution itself overflows
          checkOrthogonal(a, x, b, dtype, `lstsq, ${family}`);
          const met = difference(b, product(a, x));
          if (Number(rank.item()) === rows) {
            const scale = norm1(a) * norm1(x) * Math.max(rows, columns);
            expect(ratio(norm1(met), scale, dtype, `lstsq, ${family}, B - AX`)).toBeLessThan(THRESHOLD);
          }
          expect([...residuals.shape]).toEqual(rows > columns && Number(rank.item()) === columns ? [2] : [0]);
        }
      });

    test.each(["gelsd", "gelss"] as const)("%s solves by singular values", (driver) => {
      for (const family of ["random", "rank-deficient", "zero", "orthogonal", "graded columns"])
        for (const [rows, columns] of backend === "metal" ? few : shapes) {
          const a = inDType(families[family](rows, columns, rows + 7 * columns), dtype);
          const b = inDType(families.random(rows, 2, 5), dtype);
          const { solution, rank, singularValues, residuals } = solve(a, b, driver);
          const x = toMatrix(solution);
          checkOrthogonal(a, x, b, dtype, `${driver}, ${family}`);
          const values = toMatrix(reshape(singularValues, [1, -1])).values;
          expect(values.length).toBe(Math.min(rows, columns));
          expect(Number(rank.item())).toBeLessThanOrEqual(values.filter((value) => value > 0).length);
          expect([...residuals.shape]).toEqual(rows > columns && Number(rank.item()) === columns ? [2] : [0]);
        }
    });

    test("gels solves systems of full rank", () => {
      for (const [rows, columns] of all) {
        const a = inDType(families.random(rows, columns, rows + columns), dtype);
        const b = inDType(families.random(rows, 2, 6), dtype);
        const { solution, rank, residuals } = solve(a, b, "gels");
        const x = toMatrix(solution);
        checkOrthogonal(a, x, b, dtype, "gels");
        expect([[...rank.shape], [...residuals.shape]]).toEqual([[0], rows > columns ? [2] : [0]]);
        if (rows >= columns) continue;
        const free = outsideRows(x, a);
        expect(ratio(norm1(free), norm1(x) * columns * 10, dtype, "gels, least norm")).toBeLessThan(THRESHOLD);
      }
    });

    test.each(["gelsy", "gelsd"] as const)("%s finds the solution of least norm for a lower rank", (driver) => {
      for (const [rows, columns] of driver === "gelsy" ? all : backend === "metal" ? few : shapes) {
        const rank = Math.max(1, Math.floor(Math.min(rows, columns) / 2));
        const c = whole(rank, columns, 3 + columns);
        const a = product(whole(rows, rank, 4 + rows), c);
        const b = inDType(families.random(rows, 2, 5), dtype);
        const result = solve(a, b, driver);
        expect(Number(result.rank.item())).toBe(rank);
        const x = toMatrix(result.solution);
        checkOrthogonal(a, x, b, dtype, "lower rank");
        // rounding errors of the rows are as large as the differences between them
        expect(ratio(norm1(outsideRows(x, c)), norm1(x) * columns * 10, dtype, "least norm")).toBeLessThan(THRESHOLD);
      }
    });

    test("the rank is found if the triangular factor does not reveal it", () => {
      const size = 40;
      const [sine, cosine] = [Math.sin(1.2), Math.cos(1.2)];
      // Kahan's matrix, with a factor that keeps the order of its columns
      const kahan = matrix(size, size, (i, j) => {
        const grade = sine ** i * (1 + (size - j) * 1e-6);
        return j < i ? 0 : i === j ? grade : -cosine * grade;
      });
      // these are the smallest singular values of the leading blocks, within a factor of √n
      const least = Array.from({ length: size }, (_, k) => 1 / norm1(inverseOfUpper(leading(kahan, k + 1))));
      const diagonal = Math.abs(kahan.values.at(-1)!);
      expect(diagonal / least.at(-1)!).toBeGreaterThan(1000);
      const own = inDType(kahan, dtype);
      const limit = Math.sqrt(diagonal * least.at(-1)!);
      const { rank } = on(backend, true, () =>
        lstsq(toTensor(own, dtype), zeros([size, 1], { dtype }), { rcond: limit / norm1(own) }),
      );
      // every diagonal element is above the limit
      expect(least.filter((value) => value > 7 * limit).length).toBeLessThanOrEqual(Number(rank.item()));
      expect(least.filter((value) => value > limit / 7).length).toBeGreaterThanOrEqual(Number(rank.item()));
      expect(Number(rank.item())).toBeLessThan(size);
    });

    test("batches, broadcast operands, and vectors as right-hand sides are correct", () => {
      const a = inDType(families.random(3 * 5, 4, 1), dtype);
      const b = inDType(families.random(5, 2, 2), dtype);
      on(backend, true, () => {
        const batch = reshape(toTensor(a, dtype), [3, 5, 4]);
        const together = lstsq(batch, toTensor(b, dtype));
        expect([[...together.solution.shape], [...together.residuals.shape], [...together.rank.shape]]).toEqual([
          [3, 4, 2],
          [3, 2],
          [3],
        ]);
        for (const at of [0, 1, 2]) {
          const alone = lstsq(select(batch, 0, at), toTensor(b, dtype));
          expect(alone.solution.toArray()).toEqual(select(together.solution, 0, at).toArray());
          const vector = lstsq(select(batch, 0, at), select(toTensor(b, dtype), 1, 0));
          expect([[...vector.solution.shape], [...vector.residuals.shape]]).toEqual([[4], []]);
        }
        const vectors = lstsq(batch, zeros([3, 5], { dtype }));
        expect([[...vectors.solution.shape], [...vectors.residuals.shape]]).toEqual([[3, 4], [3]]);
      });
    });

    test("lstsq equals known values", () => {
      on(backend, true, () => {
        const a = tensor(
          [
            [1, 0],
            [1, 1],
            [1, 2],
          ],
          { dtype },
        );
        for (const driver of ["gelsy", "gels"] as const) {
          const { solution, residuals } = lstsq(a, tensor([[1], [3], [8]], { dtype }), { driver });
          const x = toMatrix(solution).values;
          expect([x[0], x[1]].map((value) => value.toFixed(4))).toEqual(["0.5000", "3.5000"]);
          expect((residuals.toArray() as number[])[0].toFixed(4)).toBe("1.5000");
        }
        // the shortest of all vectors whose elements add up to 6
        const sixes = lstsq(
          tensor(
            [
              [1, 1, 1],
              [2, 2, 2],
            ],
            { dtype },
          ),
          tensor([6, 12], { dtype }),
        );
        expect((sixes.solution.toArray() as number[]).map((value) => value.toFixed(5))).toEqual([
          "2.00000",
          "2.00000",
          "2.00000",
        ]);
        expect([sixes.rank.item(), sixes.rank.dtype]).toEqual([1n, "int64"]);
        const short = lstsq(toDType(a, "float16"), toDType(tensor([[1], [3], [5]]), "float16"));
        expect([short.solution.dtype, short.solution.toArray()]).toEqual(["float16", [[1], [2]]]);
      });
    });

    test("empty systems, and values that are not finite, are handled", () => {
      on(backend, true, () => {
        const shapeOf = (m: number, n: number, k: number) =>
          [...lstsq(zeros([m, n], { dtype }), zeros([m, k], { dtype })).solution.shape].join();
        expect([shapeOf(0, 3, 2), shapeOf(3, 0, 2), shapeOf(3, 2, 0), shapeOf(0, 0, 0)]).toEqual([
          "3,2",
          "0,2",
          "2,0",
          "0,0",
        ]);
        expect(lstsq(zeros([0, 3], { dtype }), zeros([0, 2], { dtype })).solution.toArray()).toEqual([
          [0, 0],
          [0, 0],
          [0, 0],
        ]);
        const bad = tensor(
          [
            [1, Number.NaN],
            [Number.POSITIVE_INFINITY, 2],
            [3, 4],
          ],
          { dtype },
        );
        for (const matrices of [bad, transpose(bad, 0, 1)])
          lstsq(matrices, zeros([matrices.shape[0], 1], { dtype })).solution.dataSync();
      });
    });

    test("gels rejects rank-deficient matrices", () => {
      on(backend, true, () => {
        const good = tensor(
          [
            [1, 0],
            [1, 1],
            [1, 2],
          ],
          { dtype },
        );
        const batch = stack([good, mul(good, tensor([1, 0], { dtype }))]);
        for (const matrices of [batch, transpose(batch, 1, 2)]) {
          const error = errorOf(() =>
            lstsq(matrices, zeros([2, matrices.shape[1], 1], { dtype }), { driver: "gels" }).solution.dataSync(),
          );
          expect(error).toBeInstanceOf(LinAlgError);
          expect([(error as LinAlgError).batch, (error as LinAlgError).pivot]).toEqual([[1], 2]);
        }
      });
    });
  });
}

const leading = (x: Matrix, size: number): Matrix => matrix(size, size, (i, j) => x.values[i * x.columns + j]);

/** The inverse of an upper triangle, column by column. */
function inverseOfUpper({ rows, values }: Matrix): Matrix {
  const inverse = new Float64Array(rows * rows);
  for (let j = 0; j < rows; j++)
    for (let i = j; i >= 0; i--) {
      let own = Number(i === j);
      for (let k = i + 1; k <= j; k++) own -= values[i * rows + k] * inverse[k * rows + j];
      inverse[i * rows + j] = own / values[i * rows + i];
    }
  return { rows, columns: rows, values: inverse };
}

test("incompatible shapes are rejected", () => {
  const codeOf = (body: () => unknown): unknown => (errorOf(body) as ShapeError).code;
  expect(codeOf(() => lstsq(zeros([3, 2]), zeros([2, 1])))).toBe("shapesDiffer");
  expect(codeOf(() => lstsq(zeros([3, 2]), zeros([2])))).toBe("shapesDiffer");
  expect(codeOf(() => lstsq(zeros([3, 2]), zeros([3, 1], { dtype: "float64" })))).toBe("dtypesDiffer");
  expect(codeOf(() => lstsq(zeros([2, 3, 2]), zeros([3, 3, 1])))).toBe("shapesDiffer");
});

describe.each(["reference", "cpu"] as const)("gradients of both orders on %s", (backend) => {
  const random = (rows: number, columns: number, seed: number): Matrix => families.random(rows, columns, seed);
  const check = (compute: (...x: Tensor[]) => Tensor, ...x: Matrix[]): void =>
    on(backend, true, () => checkGradients(compute, x.map(leaf)));

  for (const driver of ["gelsy", "gels", "gelsd"] as const)
    for (const [rows, columns] of [
      [3, 3],
      [4, 2],
      [2, 4],
    ] as const)
      test(`gradients of lstsq equal finite differences, ${driver}, ${rows} x ${columns}`, () => {
        check((a, b) => lstsq(a, b, { driver }).solution, random(rows, columns, 1), random(rows, 2, 2));
      });

  test.each(["gelsy", "gelss"] as const)("rank-deficient systems of constant rank have gradients, %s", (driver) => {
    const compute = (x: Tensor, y: Tensor, b: Tensor) => lstsq(matmul(x, y), b, { rcond: 1e-7, driver }).solution;
    check(compute, random(4, 2, 1), random(2, 3, 2), random(4, 1, 3));
  });

  test("residuals have gradients", () => {
    check((a, b) => reshape(lstsq(a, b).residuals, [-1, 1]), random(4, 2, 1), random(4, 2, 2));
  });

  test("broadcast batches have gradients", () => {
    check((a, b) => lstsq(stack([a, add(a, 1)]), b).solution, random(3, 2, 1), random(3, 2, 2));
  });
});
