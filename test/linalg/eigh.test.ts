/** Eigenvalues and eigenvectors of symmetric matrices, by the residuals of LAPACK's test suite (dsyt21). */
import { describe, expect, test } from "bun:test";
import { LinAlgError } from "../../src/core/errors.ts";
import { eigh, eigvalsh } from "../../src/linalg/eigh/eigh.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { zeros } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { add, mul, square } from "../../src/ops/elementwise/arithmetic.ts";
import { sin } from "../../src/ops/elementwise/trigonometric.ts";
import { backward } from "../../src/ops/gradient/backward.ts";
import { cat, stack } from "../../src/ops/join/cat.ts";
import { matmul } from "../../src/ops/matmul/matmul.ts";
import { sum } from "../../src/ops/reduction/sum.ts";
import { expand } from "../../src/ops/view/expand.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { narrow } from "../../src/ops/view/slice.ts";
import { unsqueeze } from "../../src/ops/view/squeeze.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { usually } from "../support/repeats.ts";
import { definiteEigenvalues, type Eigen, residualOf } from "./eigenvectors.ts";
import { checkGradients, leaf } from "./gradients.ts";
import { families, identity, type Matrix, matrix, product, symmetricFamilies, transposed } from "./matrices.ts";
import { randomNumbers } from "./random.ts";
import {
  inDType,
  inTurn,
  largeSizes,
  on,
  places,
  type RealDType,
  ratio,
  sizes,
  THRESHOLD,
  toMatrix,
  toTensor,
} from "./run.ts";

const numbers = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number>);

/** Whether the first of the largest elements of each column is positive. */
const hasSigns = ({ rows, columns, values }: Matrix): boolean =>
  Array.from({ length: columns }, (_, j) => Array.from({ length: rows }, (_, i) => values[i * columns + j])).every(
    (column) => {
      const largest = Math.max(...column.map(Math.abs));
      return column.find((value) => Math.abs(value) === largest)! > 0;
    },
  );

const isAscending = (values: readonly number[]): boolean =>
  values.every((value, at) => at === 0 || values[at - 1] <= value);

function check(a: Matrix, result: Eigen, dtype: RealDType, label: string): void {
  expect(isAscending(result.values)).toBe(true);
  expect(hasSigns(result.vectors)).toBe(true);
  expect(residualOf(a, result, dtype, `eigh, ${label}`)).toBeLessThan(THRESHOLD);
}

/** Checks a batch of matrices of one size. On cpu, each lane of a vector computes one small matrix. */
function checkBatch(given: readonly Matrix[], dtype: RealDType, label: string): void {
  const matrices = given.map((own) => inDType(own, dtype));
  const size = matrices[0].rows;
  const { eigenvalues, eigenvectors } = eigh(stack(matrices.map((own) => toTensor(own, dtype))));
  const [values, vectors] = [numbers(eigenvalues), numbers(eigenvectors)];
  for (const [at, own] of matrices.entries()) {
    const columns = Float64Array.from(vectors.slice(at * size * size, (at + 1) * size * size));
    const result = {
      values: values.slice(at * size, (at + 1) * size),
      vectors: { rows: size, columns: size, values: columns },
    };
    check(own, result, dtype, label);
  }
}

function decomposed(x: Tensor, options: { UPLO?: "L" | "U" } = {}): Eigen {
  const { eigenvalues, eigenvectors } = eigh(x, options);
  return { values: numbers(eigenvalues), vectors: toMatrix(eigenvectors) };
}

/** The largest difference from other values, in roundings of the largest value. */
const distance = (values: readonly number[], others: readonly number[], dtype: RealDType): number =>
  ratio(
    Math.max(0, ...values.map((value, at) => Math.abs(value - others[at]))),
    Math.max(0, ...others.map(Math.abs)) * Math.max(1, values.length),
    dtype,
  );

// families for which slow backends also compute large matrices
const sample = ["random", "graded", "repeated eigenvalues", "near overflow"];

for (const { backend, dtype } of places) {
  const all = backend === "reference" ? sizes : [...sizes, ...largeSizes];
  describe(`eigh, ${backend} ${dtype}`, () => {
    for (const [family, make] of Object.entries(symmetricFamilies))
      test(`eigh of ${family} is accurate`, () => {
        const slow = backend === "cpu" ? 200 : sample.includes(family) ? 65 : 33;
        const own = all.filter((size) => size <= slow);
        for (const size of inTurn(family, Object.keys(symmetricFamilies), own)) {
          const a = inDType(make(size, size + 1), dtype);
          const [result, values] = on(backend, true, () => {
            const x = toTensor(a, dtype);
            return [decomposed(x), numbers(eigvalsh(x))] as const;
          });
          check(a, result, dtype, family);
          expect(distance(values, result.values, dtype)).toBeLessThan(THRESHOLD);
          const others = [2, 3, 4].map((seed) => make(size, seed));
          if (backend === "cpu" && size <= 33)
            on(backend, true, () => checkBatch([a, ...others], dtype, `${family}, batch`));
        }
      });

    if (backend === "metal")
      test("eigh accepts more rows than threadgroup memory holds", () => {
        for (const [family, make] of Object.entries(symmetricFamilies))
          for (const size of family === "random" ? [100, 128, 129] : usually([70], () => sample.includes(family))) {
            const a = inDType(make(size, size + 1), dtype);
            const [result, values] = on(backend, true, () => {
              const x = toTensor(a, dtype);
              return [decomposed(x), numbers(eigvalsh(x, "U"))] as const;
            });
            check(a, result, dtype, `${family}, blocked`);
            expect(distance(values, result.values, dtype)).toBeLessThan(THRESHOLD);
          }
        // with only two blocks, most rounds are empty
        for (const first of [0, 32, 64]) {
          const corner = symmetricFamilies.random(64, 3);
          const isIn = (i: number): boolean => i >= first && i < first + 64;
          const a = inDType(
            matrix(128, 128, (i, j) =>
              isIn(i) && isIn(j) ? corner.values[(i - first) * 64 + j - first] : Number(i === j),
            ),
            dtype,
          );
          const result = on(backend, true, () => decomposed(toTensor(a, dtype)));
          check(a, result, dtype, "corner, blocked");
        }
        const make = symmetricFamilies.random;
        on(backend, true, () =>
          checkBatch(
            [1, 2, 3, 4, 5].map((seed) => make(66, seed)),
            dtype,
            "blocked batch",
          ),
        );
      });

    test("only one triangle is read, of transposed operands and slices too", () => {
      for (const size of [2, 5, 8, 17, 33]) {
        const a = inDType(symmetricFamilies.random(size, 3), dtype);
        const lower = matrix(size, size, (i, j) => (j <= i ? a.values[i * size + j] : Number.NaN));
        on(backend, true, () => {
          const x = toTensor(lower, dtype);
          const expected = decomposed(toTensor(a, dtype));
          expect(decomposed(x)).toEqual(expected);
          expect(decomposed(x, { UPLO: "L" })).toEqual(expected);
          expect(decomposed(transpose(x, 0, 1), { UPLO: "U" })).toEqual(expected);
          expect(decomposed(toTensor(transposed(lower), dtype), { UPLO: "U" })).toEqual(expected);
          expect(decomposed(transpose(toTensor(transposed(lower), dtype), 0, 1))).toEqual(expected);
          expect(decomposed(narrow(cat([x, x], { dim: 1 }), 1, 0, size))).toEqual(expected);
          expect(decomposed(narrow(cat([expand(zeros(1, { dtype }), size, size), x]), 0, size, size))).toEqual(
            expected,
          );
          const behind = transpose(narrow(cat([x, toTensor(transposed(lower), dtype)]), 0, size, size), 0, 1);
          expect(decomposed(behind)).toEqual(expected);
        });
      }
    });

    test("the results of a matrix have the same bits in any batch", () => {
      for (const size of backend === "reference" ? [1, 8, 17] : [1, 3, 8, 16, 31, 32, 40]) {
        const own = toTensor(inDType(symmetricFamilies.random(size, 5), dtype), dtype);
        const others = Object.values(symmetricFamilies).map((make) => toTensor(inDType(make(size, 7), dtype), dtype));
        on(backend, true, () => {
          const all = stack([own, ...others, own, own]);
          const { eigenvalues, eigenvectors } = eigh(all);
          for (const at of [others.length + 1, others.length + 2]) {
            expect(numbers(narrow(eigenvalues, 0, at, 1))).toEqual(numbers(narrow(eigenvalues, 0, 0, 1)));
            expect(numbers(narrow(eigenvectors, 0, at, 1))).toEqual(numbers(narrow(eigenvectors, 0, 0, 1)));
          }
          expect(eigh(all).eigenvectors.dataSync()).toEqual(eigenvectors.dataSync());
        });
      }
    });

    test.each([
      [100, 32],
      [backend === "cpu" ? 500 : 37, 4],
      [7, 33],
    ])("a batch of %d of size %d is accurate", (count, size) => {
      if (backend === "reference" && size === 32) count = 10;
      const matrices = Array.from({ length: count }, (_, at) => inDType(symmetricFamilies.random(size, at + 1), dtype));
      on(backend, true, () => checkBatch(matrices, dtype, `batch of ${size} x ${size}`));
    });

    test("eigh equals closed forms", () => {
      for (const size of [1, 2, 3, 8, 21, 32, 40, 63]) {
        for (const [make, expected] of closedForms) {
          const a = toTensor(make(size), dtype);
          const values = on(backend, true, () => numbers(eigvalsh(a)));
          const right = Array.from({ length: size }, (_, k) => expected(k + 1, size)).sort((x, y) => x - y);
          expect(distance(values, right, dtype)).toBeLessThan(2);
        }
      }
    });

    if (backend !== "cpu")
      test("graded positive definite matrices have eigenvalues with all digits", () => {
        for (const size of [2, 5, 8, 17, 33, 64]) {
          if (backend === "reference" && size > 33) continue;
          const noise = symmetricFamilies.random(size, 5);
          const scale = (i: number): number => 10 ** (-12 * (((i * 7) % size) / size)); // the magnitudes are not sorted
          const a = inDType(
            matrix(
              size,
              size,
              (i, j) => (noise.values[i * size + j] / (4 * size) + Number(i === j)) * scale(i) * scale(j),
            ),
            dtype,
          );
          const values = on(backend, true, () => numbers(eigvalsh(toTensor(a, dtype))));
          const expected = definiteEigenvalues(a);
          expect(expected.at(-1)! / expected[0]).toBeGreaterThan(1e11);
          const worst = Math.max(...values.map((value, at) => Math.abs(value / expected[at] - 1)));
          expect(ratio(worst, size, dtype, "eigvalsh, relative")).toBeLessThan(THRESHOLD / 10);
        }
      });

    test("Wilkinson's W21+ has accurate eigenvalues", () => {
      const values = on(backend, true, () => numbers(eigvalsh(toTensor(families.wilkinson(21, 21, 0), dtype))));
      expect(values.at(-1)!).toBeCloseTo(10.746194182903393, dtype === "float32" ? 4 : 12);
      expect(values.at(-2)!).toBeCloseTo(10.746194182903322, dtype === "float32" ? 4 : 12);
      expect(values[0]).toBeCloseTo(-1.125441522119985, dtype === "float32" ? 4 : 12);
    });

    test("matrices that are not finite are rejected", () => {
      for (const size of [1, 2, 9, 32, 33, 66])
        for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
          const good = toTensor(identity(size), dtype);
          const row = size - 1;
          const a = toTensor(
            matrix(size, size, (i, j) => (i === row && j === row ? bad : Number(i === j))),
            dtype,
          );
          for (const run of [eigh, eigvalsh]) {
            const read = (): unknown => {
              const result = run(stack([good, a, good, a]));
              return ("eigenvalues" in result ? result.eigenvalues : result).dataSync();
            };
            const error = on(backend, true, () => errorOf(read)) as LinAlgError;
            expect(error).toBeInstanceOf(LinAlgError);
            expect(error.message).toBe(
              `[${run.name}] the matrix at [1] of the batch has an element that is not finite, in row ${size}`,
            );
            expect([error.batch, error.pivot]).toEqual([[1], size]);
          }
        }
    });

    test("empty batches and matrices have empty results", () => {
      on(backend, true, () => {
        for (const shape of [
          [0, 0],
          [3, 0, 0],
          [0, 4, 4],
          [2, 0, 5, 5],
        ]) {
          const { eigenvalues, eigenvectors } = eigh(zeros(shape, { dtype }));
          expect([eigenvalues.shape, eigenvectors.shape]).toEqual([shape.slice(0, -1), shape]);
          expect(eigvalsh(zeros(shape, { dtype })).shape).toEqual(shape.slice(0, -1));
        }
      });
    });

    test("16-bit dtypes are computed in float32", () => {
      for (const short of ["float16", "bfloat16"] as const)
        on(backend, true, () => {
          const { eigenvalues, eigenvectors } = eigh(
            toDType(
              tensor([
                [5, 4],
                [4, -1],
              ]),
              short,
            ),
          );
          expect([eigenvalues.dtype, eigenvectors.dtype]).toEqual([short, short]);
          expect(numbers(eigenvalues).map(Math.round)).toEqual([-3, 7]);
        });
    });
  });
}

/** Matrices with known eigenvalues: the k-th of a tridiagonal matrix of size n, for k = 1, …, n. */
const closedForms: readonly (readonly [make: (n: number) => Matrix, value: (k: number, n: number) => number])[] = [
  [
    (n) => matrix(n, n, (i, j) => (i === j ? 2 : Math.abs(i - j) === 1 ? -1 : 0)),
    (k, n) => 2 - 2 * Math.cos((k * Math.PI) / (n + 1)),
  ],
  [(n) => symmetricFamilies.clement(n, 0), (k, n) => 2 * k - n - 1],
  [(n) => matrix(n, n, (i, j) => (i === j ? (i * 11) % n : 0)), (k) => k - 1],
  [(n) => matrix(n, n, () => 1), (k, n) => (k === n ? n : 0)],
  [(n) => matrix(n, n, () => 0), () => 0],
  [(n) => matrix(n, n, (i, j) => (i + j === n - 1 ? 1 : 0)), (k, n) => (k <= Math.floor(n / 2) ? -1 : 1)],
];

// LAPACK, if available, computes sizes of at least 192 (eigenvalues alone) or 256
test.each(usually([180, 260, 500], (size) => size < 500))("a matrix of %d rows is accurate on cpu", (size) => {
  for (const dtype of ["float32", "float64"] as const)
    for (const family of size === 500 ? ["random"] : ["random", "graded"]) {
      const a = inDType(symmetricFamilies[family](size, 1), dtype);
      const [result, values] = on("cpu", true, () => {
        const x = toTensor(a, dtype);
        return [decomposed(x), numbers(eigvalsh(x))] as const;
      });
      check(a, result, dtype, `${size} x ${size}`);
      expect(distance(values, result.values, dtype)).toBeLessThan(THRESHOLD);
    }
});

// up to 96 rows, batches of eight or more are computed in vector lanes, one matrix per lane
test.each([40, 64, 96, 97, 260])("a batch of matrices of %d rows is accurate on cpu", (size) => {
  const count = size > 97 ? 2 : 9;
  const names = ["random", "repeated eigenvalues", "graded", "near overflow", "hilbert"];
  const matrices = Array.from({ length: count }, (_, at) => symmetricFamilies[names[at % 5]](size, at));
  for (const dtype of ["float32", "float64"] as const)
    on("cpu", true, () => checkBatch(matrices, dtype, "large batch"));
});

// elements past the rank are rounding errors, as large as their neighbors
test.each([57, 65, 80, 96])("batches of matrices of rank 1 to 5 and %d rows are accurate on cpu", (size) => {
  for (const dtype of ["float32", "float64"] as const)
    for (const rank of [1, 2, 3, 5]) {
      const matrices = Array.from({ length: 16 }, (_, at) => {
        const samples: Matrix = { rows: size, columns: rank, values: randomNumbers(size * rank, 100 * rank + at) };
        return product(samples, transposed(samples));
      });
      on("cpu", true, () => checkBatch(matrices, dtype, `rank ${rank}`));
    }
});

describe.each(["reference", "cpu"] as const)("gradients of both orders on %s", (backend) => {
  const symmetric = (x: Tensor): Tensor => add(x, transpose(x, -1, -2));
  const a = leaf(families.random(4, 4, 3));
  // functions that do not depend on the signs of the eigenvectors: f(A) = V f(Λ) Vᵀ, and squares of their elements
  const spectral = (x: Tensor): Tensor => {
    const { eigenvalues, eigenvectors } = eigh(symmetric(x));
    return matmul(mul(eigenvectors, unsqueeze(sin(eigenvalues), -2)), transpose(eigenvectors, -1, -2));
  };

  test("functions of a matrix have gradients of both orders", () =>
    on(backend, true, () => checkGradients(spectral, [a])));
  test("batches have gradients of both orders", () =>
    on(backend, true, () =>
      checkGradients((x) => spectral(stack([x, mul(x, 1.5)])), [leaf(families.random(3, 3, 8))]),
    ));
  test("squares of eigenvectors have gradients of both orders", () =>
    on(backend, true, () => checkGradients((x) => square(eigh(symmetric(x)).eigenvectors), [a])));
  test("eigenvalues have gradients of both orders", () => {
    for (const UPLO of ["L", "U"] as const)
      on(backend, true, () => checkGradients((x) => unsqueeze(eigvalsh(symmetric(x), UPLO), 0), [a]));
  });

  test("repeated eigenvalues have finite gradients, their eigenvectors have none", () => {
    on(backend, true, () => {
      for (const run of [eigvalsh, (x: Tensor) => eigh(x).eigenvalues]) {
        const x = leaf(identity(3));
        backward(sum(run(x)));
        expect(x.grad!.toArray()).toEqual(toTensor(identity(3), "float64").toArray());
      }
      const x = leaf(identity(3));
      backward(sum(eigh(x).eigenvectors));
      expect(numbers(x.grad!).some(Number.isFinite)).toBe(false);
    });
  });
});
