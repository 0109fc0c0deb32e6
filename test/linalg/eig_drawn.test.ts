/** Eigenvalues of real matrices whose sizes are around whole vectors, and of matrices with known eigenvalues. */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../src/backend/policy.ts";
import { linalg, matmul, mul, type Tensor, tensor } from "../../src/index.ts";
import { drawn, residual, wide } from "./complex_matrices.ts";
import { mulberry32 } from "./random.ts";

interface Number2 {
  readonly re: number;
  readonly im: number;
}

/** Kinds of matrices: their elements, given a source of numbers from 0 to 1. */
const kinds: Readonly<Record<string, (random: () => number, n: number) => number[]>> = {
  general: (random, n) => Array.from({ length: n * n }, () => random() - 0.5),
  // needs the balancing by powers of two
  graded: (random, n) =>
    Array.from({ length: n * n }, (_, at) => (random() - 0.5) * 2 ** ((at % n) - Math.floor(at / n))),
  // the reflections of these columns are the identity
  hessenberg: (random, n) =>
    Array.from({ length: n * n }, (_, at) => (Math.floor(at / n) > (at % n) + 1 ? 0 : random() - 0.5)),
  // sweeps start within blocks, and blocks split
  sparse: (random, n) => Array.from({ length: n * n }, () => (random() < 0.1 ? random() - 0.5 : 0)),
};
const sizes = [1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 90];

describe("eig of real matrices", () => {
  for (const [kind, elements] of Object.entries(kinds))
    test(`${kind} matrices have accurate eigenvectors, and eigvals has the bits of eig`, () => {
      withBackend("cpu", () => {
        const random = mulberry32(kind.length);
        for (const n of sizes) {
          const a = tensor(new Float64Array(elements(random, n))).reshape([n, n]) as Tensor;
          const { eigenvalues, eigenvectors } = linalg.eig(a) as { eigenvalues: Tensor; eigenvectors: Tensor };
          const scaled = mul(wide(eigenvectors), wide(eigenvalues).unsqueeze(-2)) as Tensor;
          expect(residual(matmul(wide(a), wide(eigenvectors)), scaled, a, "complex128")).toBeLessThan(30);
          expect(linalg.eigvals(a).toArray()).toEqual(eigenvalues.toArray());
          const [values, given] = [eigenvalues.toArray() as Number2[], a.toArray() as number[][]];
          const trace = given.reduce((sum, row, at) => sum + row[at], 0);
          const size = Math.max(1, ...given.flat().map(Math.abs));
          expect(Math.abs(values.reduce((sum, { re }) => sum + re, -trace))).toBeLessThan(1e-13 * n * n * size);
        }
      });
    });

  test("eigenvalues of drawn similar matrices are those of the diagonal", () => {
    withBackend("cpu", () => {
      const random = mulberry32(3);
      for (let time = 0; time < 10; time++) {
        const n = 2 + Math.floor(random() * 50);
        const values = Array.from({ length: n }, (_, at) => at + random() / 2);
        const { q } = linalg.qr(drawn(random, [n, n], n, "complex128", 1));
        const real = linalg.qr(q.real() as Tensor<"float64">).q;
        const a = matmul(mul(real, tensor(new Float64Array(values))) as Tensor, real.t());
        const found = (linalg.eigvals(a).toArray() as Number2[]).map(({ re }) => re).sort((x, y) => x - y);
        for (const [at, value] of found.entries()) expect(Math.abs(value - values[at])).toBeLessThan(1e-13 * n * n);
      }
    });
  });
});
