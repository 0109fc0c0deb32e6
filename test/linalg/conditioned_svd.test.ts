/** Singular values and vectors of one matrix on the cpu, whose condition number decides between two methods. */
import { expect, test } from "bun:test";
import { svdvals } from "../../src/linalg/svd/svd.ts";
import { repeats } from "../support/repeats.ts";
import { Chooser } from "./draw.ts";
import { families, type Matrix, matrix, product, transposed } from "./matrices.ts";
import { epsilonOf, inDType, on, type RealDType, toTensor } from "./run.ts";
import { checkSvd } from "./svd.ts";

const CASES = repeats({ usual: 150, all: 1500 });

const valuesOf = (a: Matrix, dtype: RealDType): number[] =>
  Array.from(svdvals(toTensor(a, dtype)).dataSync() as Float64Array);

/** U diag(s) Vᵀ with drawn singular vectors, and values between 1 and 1 / condition, times a drawn power of two. */
function drawn(choose: Chooser): Matrix {
  const [rows, columns] = [choose.size(40), choose.size(40)];
  const count = Math.min(rows, columns);
  const orthonormal = (size: number): Matrix => families.orthogonal(size, size, 1 + choose.below(1 << 20));
  const [u, v] = [orthonormal(rows), orthonormal(columns)];
  const decades = choose.of([0, 1, 2, 3, 5, 8, 14]);
  const exponents = Array.from({ length: count }, () => choose.below(1001) / 1000);
  const scale = 2 ** (choose.below(61) - 30);
  const middle = matrix(rows, columns, (i, j) => (i === j ? scale * 10 ** (-decades * exponents[i]) : 0));
  return product(product(u, middle), transposed(v));
}

for (const dtype of ["float32", "float64"] as const)
  test(`${CASES} drawn matrices of any condition number have accurate values and vectors, ${dtype}`, () => {
    for (let number = 0; number < CASES; number++) {
      const a = inDType(drawn(new Chooser(number + 1)), dtype);
      const exact = on("reference", true, () => valuesOf(a, "float64"));
      const found = on("cpu", true, () => {
        checkSvd(a, dtype, number % 2 === 0, `svd, case ${number}`);
        return valuesOf(a, dtype);
      });
      // float32 is computed in float64, so that each value has all its digits until float64 has lost them. Long
      // matrices are first reduced in their dtype, and large ones computed by LAPACK.
      const [least, most] = [Math.min(a.rows, a.columns), Math.max(a.rows, a.columns)];
      const hasAllDigits = dtype === "float32" && most < 2 * least && least <= 32;
      for (const [at, value] of found.entries()) {
        const unit = hasAllDigits ? exact[at] + 2 ** -49 * exact[0] : exact[0];
        const error = Math.abs(value - exact[at]) / (unit * epsilonOf[dtype]);
        if (!(error < (hasAllDigits ? 1 : 20))) throw new Error(`case ${number}, value ${at}: ${error} roundings`);
      }
    }
    expect(CASES).toBeGreaterThan(0);
  });

for (const dtype of ["float32", "float64"] as const)
  test(`values of columns scaled in drawn orders have all digits, ${dtype}`, () => {
    for (let number = 1; number <= 20; number++) {
      const choose = new Chooser(number);
      const size = 4 + choose.below(24);
      const noise = families.random(size, size, 1 + choose.below(1 << 20));
      const scales = Array.from({ length: size }, () => 2 ** -choose.below(60));
      const a = inDType(
        matrix(size, size, (i, j) => (noise.values[i * size + j] / size + Number(i === j)) * scales[j]),
        dtype,
      );
      const exact = on("reference", true, () => valuesOf(a, "float64"));
      const found = on("cpu", true, () => valuesOf(a, dtype));
      for (const [at, value] of found.entries())
        expect(Math.abs(value / exact[at] - 1)).toBeLessThan(200 * epsilonOf[dtype]);
    }
  });
