/** Batches of small matrices on cpu, one per vector lane: on every instruction set, also partly filled groups. */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../src/backend/cpu/report.ts";
import { choleskyEx } from "../../src/linalg/cholesky/cholesky.ts";
import { choleskyCall } from "../../src/linalg/cholesky/primitive.ts";
import { triangularCall } from "../../src/linalg/triangular/primitive.ts";
import { solveTriangular } from "../../src/linalg/triangular/triangular.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { definiteFamilies, difference, families, type Matrix, matrix, norm1, product, transposed } from "./matrices.ts";
import { inDType, on, type RealDType, ratio, THRESHOLD } from "./run.ts";

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => configure(native, "isa", initial));

const orders = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33];
const batches = [1, 2, 3, 4, 7, 9, 15, 16, 17, 33];

function batchOf(all: readonly Matrix[], dtype: RealDType): Tensor {
  const { rows, columns } = all[0];
  const values = new Float64Array(all.length * rows * columns);
  for (const [at, own] of all.entries()) values.set(own.values, at * rows * columns);
  return reshape(tensor(values, { dtype }), [all.length, rows, columns]);
}

function matricesOf(x: Tensor): Matrix[] {
  const [batch, rows, columns] = x.shape;
  const values = Float64Array.from(reshape(x, [batch * rows * columns]).dataSync() as ArrayLike<number>);
  const size = rows * columns;
  return Array.from({ length: batch }, (_, at) => ({
    rows,
    columns,
    values: values.slice(at * size, (at + 1) * size),
  }));
}

describe.each(isas)("the linear algebra of batches of small matrices, %s", (isa) => {
  const onCpu = <Result>(body: () => Result): Result => {
    configure(native, "isa", isa);
    return on("cpu", true, body);
  };

  for (const dtype of ["float32", "float64"] as const) {
    test.each([false, true])(`cholesky of batches is accurate, ${dtype}, upper %p`, (upper) => {
      for (const n of orders) {
        const good = Array.from({ length: 7 }, (_, seed) => inDType(definiteFamilies.random(n, seed + 1), dtype));
        const minor = Math.ceil(n / 2);
        const bad = {
          ...good[0],
          values: good[0].values.map((value, at) => (at === (minor - 1) * (n + 1) ? -1 : value)),
        };
        for (const batch of batches) {
          const wrong = batch > 2 ? batch - 2 : -1;
          const all = Array.from({ length: batch }, (_, at) => (at === wrong ? bad : good[at % 7]));
          const { factor, info } = onCpu(() => choleskyEx(batchOf(all, dtype), { upper }));
          expect([...info.dataSync()]).toEqual(all.map((own) => (own === bad ? minor : 0)));
          for (const [at, own] of matricesOf(onCpu(() => factor)).entries()) {
            const l = upper ? transposed(own) : own;
            const isLost = (i: number, j: number) => j > i || (at === wrong && i >= minor - 1);
            expect(l.values.findIndex((value, e) => isLost(Math.floor(e / n), e % n) && value !== 0)).toBe(-1);
            if (at === wrong) continue;
            const residual = norm1(difference(all[at], product(l, transposed(l))));
            expect(ratio(residual, n * norm1(all[at]), dtype, "cholesky in lanes")).toBeLessThan(THRESHOLD);
          }
        }
      }
    });

    test(`nothing is written after the last matrix, ${dtype}`, () => {
      configure(native, "isa", isa);
      const ArrayOf = dtype === "float32" ? Float32Array : Float64Array;
      for (const size of [1, 3, 4, 5, 9])
        for (const batch of [2, 3, 5, 9, 13, 17]) {
          const [elements, guard] = [batch * size * size, 16 * size * size];
          const a = new ArrayOf(elements);
          for (let at = 0; at < elements; at++) a[at] = (at % (size * size)) % (size + 1) === 0 ? 4 : 0;
          const factor = new ArrayOf(elements + guard).fill(7);
          const info = new Int32Array(batch + 16).fill(7);
          choleskyCall("test", { dtype, batch, size, upper: false }, [a, factor, info]);
          expect([...factor.subarray(elements), ...info.subarray(batch)].every((value) => value === 7)).toBe(true);
          expect(factor.subarray(0, elements)).toEqual(a.map((value) => value / 2));
          const x = new ArrayOf(elements + guard).fill(7);
          const flags = { upper: false, unitDiagonal: false, transposedA: false, transposedB: false };
          triangularCall("test", { dtype, batch, rows: size, columns: size, ...flags }, [a, a, x]);
          expect(x.subarray(elements).every((value) => value === 7)).toBe(true);
        }
    });

    test.each([false, true])(`solveTriangular of batches is accurate, ${dtype}, upper %p`, (upper) => {
      for (const n of orders)
        for (const columns of [1, 3, 4, 40]) {
          const seeds = [1, 2, 3, 4, 5];
          const factors = seeds.map((seed) => {
            const { values } = families.random(n, n, seed);
            return inDType(
              matrix(n, n, (i, j) => {
                if (i === j) return 1 + Math.abs(values[i * n + j]);
                return (upper ? j > i : j < i) ? values[i * n + j] / n : Number.NaN;
              }),
              dtype,
            );
          });
          const sides = seeds.map((seed) => inDType(families.random(n, columns, seed + 20), dtype));
          for (const batch of columns === 3 ? batches : [1, 17]) {
            const all = Array.from({ length: batch }, (_, at) => at % 5);
            const a = batchOf(
              all.map((at) => factors[at]),
              dtype,
            );
            const b = batchOf(
              all.map((at) => sides[at]),
              dtype,
            );
            const aOther = transpose(
              batchOf(
                all.map((at) => transposed(factors[at])),
                dtype,
              ),
              1,
              2,
            );
            const bOther = transpose(
              batchOf(
                all.map((at) => transposed(sides[at])),
                dtype,
              ),
              1,
              2,
            );
            const layouts = [
              [a, b],
              [aOther, bOther],
              [aOther, b],
              [a, bOther],
            ] as const;
            for (const [left, right] of layouts.slice(0, batch === 17 ? 4 : 1))
              for (const [at, x] of matricesOf(onCpu(() => solveTriangular(left, right, { upper }))).entries()) {
                const own = factors[at % 5];
                const read = { ...own, values: own.values.map((value) => (Number.isNaN(value) ? 0 : value)) };
                const residual = norm1(difference(product(read, x), sides[at % 5]));
                expect(ratio(residual, norm1(read) * norm1(x), dtype, "solveTriangular in lanes")).toBeLessThan(
                  THRESHOLD,
                );
              }
          }
        }
    });
  }
});
