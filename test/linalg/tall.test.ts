/** Matrices of many more rows than columns, which the cpu factorizes in blocks of rows. */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { lstsq } from "../../src/linalg/qr/lstsq.ts";
import { qr } from "../../src/linalg/qr/qr.ts";
import { svd } from "../../src/linalg/svd/svd.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { difference, families, identity, type Matrix, norm1, product, transposed } from "./matrices.ts";
import { inDType, on, type RealDType, ratio, THRESHOLD, toMatrix, toTensor } from "./run.ts";
import { checkSvd } from "./svd.ts";

const { native } = cpuLibrary();
afterAll(() => configure(native, "threads", "auto"));

/** Exactly two blocks, one row more, several blocks with a remainder, and taller blocks. */
const shapes = [
  [1024, 64],
  [1025, 1],
  [1600, 33],
  [1300, 66],
] as const;

function checkQr(a: Matrix, dtype: RealDType, of: string): void {
  const { q, r } = qr(toTensor(a, dtype));
  const [own, upper] = [toMatrix(q), toMatrix(r)];
  const scale = norm1(a) * a.rows;
  expect(ratio(norm1(difference(a, product(own, upper))), scale, dtype, `qr in blocks, ${of}`)).toBeLessThan(THRESHOLD);
  const products = difference(product(transposed(own), own), identity(own.columns));
  expect(ratio(norm1(products), a.rows, dtype, `qr in blocks, ${of}, QᵀQ - I`)).toBeLessThan(THRESHOLD);
  const column = (at: number): number => at % a.columns;
  const row = (at: number): number => Math.floor(at / a.columns);
  expect(upper.values.findIndex((value, at) => column(at) < row(at) && value !== 0)).toBe(-1);
  expect(upper.values.findIndex((value, at) => column(at) === row(at) && !(value >= 0))).toBe(-1);
  expect([...qr(toTensor(a, dtype), "r").r.dataSync()]).toEqual([...upper.values]);
}

/** The residual is orthogonal to the range of A: Aᵀ(B − A X) = 0. */
function checkLeastSquares(a: Matrix, dtype: RealDType, of: string): void {
  const b = inDType(families.random(a.rows, 2, 5), dtype);
  const x = toMatrix(lstsq(toTensor(a, dtype), toTensor(b, dtype)).solution);
  const outside = product(transposed(a), difference(b, product(a, x)));
  const scale = norm1(transposed(a)) * (norm1(b) + norm1(a) * norm1(x)) * a.rows;
  expect(ratio(norm1(outside), scale, dtype, `lstsq in blocks, ${of}`)).toBeLessThan(THRESHOLD);
}

/** Constructing these matrices takes seconds, because they are products with orthogonal matrices of all rows. */
const slow = ["clustered values", "repeated values", "geometric values", "orthogonal"];

describe.each(["float64", "float32"] as const)("decompositions of tall and wide matrices, %s", (dtype) => {
  for (const [family, make] of Object.entries(families).filter(([name]) => !slow.includes(name)))
    test(family, () => {
      const all = family === "random" ? shapes : ([[1100, 9]] as const);
      for (const [rows, columns] of all) {
        const a = inDType(make(rows, columns, rows + columns), dtype);
        on("cpu", true, () => {
          checkQr(a, dtype, family);
          checkLeastSquares(a, dtype, family);
          checkSvd(a, dtype, false, `svd in blocks, ${family}`);
        });
      }
    });

  test("wide matrices are decomposed by their transposes", () => {
    const a = inDType(families.random(9, 1100, 3), dtype);
    on("cpu", true, () => checkSvd(a, dtype, false, "svd in blocks, wide"));
  });

  test("every number of threads gives the same bits", () => {
    const a = toTensor(inDType(families.random(3000, 20, 8), dtype), dtype);
    const bits = (results: object): unknown[] =>
      Object.values(results).map((result: Tensor) => Bun.hash((result.dataSync() as Float32Array).slice().buffer));
    const [one, ...others] = ["1", "2", "3", "7"].map((threads) => {
      configure(native, "threads", threads);
      return on("cpu", true, () => [...bits(qr(a)), ...bits(svd(a, { fullMatrices: false }))]);
    });
    for (const other of others) expect(other).toEqual(one);
  });

  test("elements that are not finite give NaN, and an error in svd", () => {
    const make = families.random(1100, 4, 1);
    make.values[4000] = Number.NaN;
    const a = toTensor(make, dtype);
    on("cpu", true, () => {
      expect((qr(a).r.dataSync() as Float32Array).some(Number.isNaN)).toBe(true);
      expect(() => svd(transpose(a, 0, 1), { fullMatrices: false })).toThrow("[svd] the matrix");
    });
  });
});
