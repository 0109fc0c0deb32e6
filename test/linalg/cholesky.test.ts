/** Cholesky factors and triangular systems, by the residuals of LAPACK's test suite (dpot01, dtrt02). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { LinAlgError } from "../../src/core/errors.ts";
import { cholesky, choleskyEx } from "../../src/linalg/cholesky/cholesky.ts";
import { solveTriangular } from "../../src/linalg/triangular/triangular.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { add, mul } from "../../src/ops/elementwise/arithmetic.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import { select } from "../../src/ops/view/slice.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { usually } from "../support/repeats.ts";
import { checkGradients, leaf } from "./gradients.ts";
import { definiteFamilies, difference, families, type Matrix, matrix, norm1, product, transposed } from "./matrices.ts";
import { inDType, inTurn, largeSizes, on, places, ratio, sizes, THRESHOLD, toMatrix, toTensor } from "./run.ts";
import { testVariants } from "./variants.ts";

for (const { backend, dtype } of places) {
  describe(`cholesky, ${backend} ${dtype}`, () => {
    const all = backend === "metal" ? sizes : [...sizes, ...largeSizes];
    for (const [family, make] of Object.entries(definiteFamilies))
      test(`cholesky of ${family} is accurate`, () => {
        for (const size of inTurn(family, Object.keys(definiteFamilies), all)) {
          const a = inDType(make(size, size + 1), dtype);
          const l = on(backend, true, () => toMatrix(cholesky(toTensor(a, dtype))));
          expect(l.values.findIndex((value, at) => at % size > Math.floor(at / size) && value !== 0)).toBe(-1);
          const residual = norm1(difference(a, product(l, transposed(l))));
          expect(ratio(residual, size * norm1(a), dtype, `cholesky, ${family}`)).toBeLessThan(THRESHOLD);
        }
      });

    for (const [family, make] of Object.entries(families)) {
      if (["zero", "diagonal", "rank-deficient"].includes(family)) continue; // their diagonals contain zeros
      test(`solveTriangular of ${family} is accurate`, () => {
        const own = all.filter((size) => size > 0 && (size < 40 || family === "random"));
        for (const size of inTurn(family, Object.keys(families), own)) checkTriangular(size);
      });
      const checkTriangular = (size: number): void => {
        const full = make(size, size, size + 2);
        const b = inDType(families.random(size, 3, size + 9), dtype);
        for (const upper of [false, true]) {
          const a = inDType(
            matrix(size, size, (i, j) => {
              if (i === j) return full.values[i * size + j] || norm1(full);
              return (upper ? j > i : j < i) ? full.values[i * size + j] / size : Number.NaN;
            }),
            dtype,
          );
          const read = { ...a, values: a.values.map((value) => (Number.isNaN(value) ? 0 : value)) };
          const x = on(backend, true, () =>
            toMatrix(solveTriangular(toTensor(a, dtype), toTensor(b, dtype), { upper })),
          );
          if (!x.values.every(Number.isFinite)) continue; // the solution itself overflows
          const residual = norm1(difference(product(read, x), b));
          expect(ratio(residual, norm1(read) * norm1(x), dtype, `solveTriangular, ${family}`)).toBeLessThan(THRESHOLD);
        }
      };
    }

    test("a matrix that is not positive definite is an error", () => {
      const good = tensor(
        [
          [4, 2],
          [2, 5],
        ],
        { dtype },
      );
      const bad = tensor(
        [
          [1, 2],
          [2, 1],
        ],
        { dtype },
      );
      on(backend, true, () => {
        const batch = stack([good, good, bad, good]);
        const error = errorOf(() => cholesky(batch).dataSync()) as LinAlgError;
        expect(error).toBeInstanceOf(LinAlgError);
        expect(error.message).toBe(
          "[cholesky] the matrix at [2] of the batch is not positive definite: its leading minor of order 2 is not",
        );
        expect([error.batch, error.pivot]).toEqual([[2], 2]);
        const { factor, info } = choleskyEx(batch);
        expect(info.toArray()).toEqual([0, 0, 2, 0]);
        expect(factor.toArray()).toEqual([
          [
            [2, 0],
            [1, 2],
          ],
          [
            [2, 0],
            [1, 2],
          ],
          [
            [1, 0],
            [0, 0],
          ],
          [
            [2, 0],
            [1, 2],
          ],
        ]);
        for (const value of [Number.NaN, -1, 0]) expect(choleskyEx(tensor([[value]], { dtype })).info.item()).toBe(1);
      });
    });

    test("a matrix may be a view into a batch", () => {
      on(backend, true, () => {
        const a = select(reshape(tensor([1, 0, 0, 1, 4, 2, 2, 5], { dtype }), [2, 2, 2]), 0, 1);
        expect(cholesky(a).toArray()).toEqual([
          [2, 0],
          [1, 2],
        ]);
        expect(solveTriangular(a, a, { upper: true }).toArray()).toEqual(
          [
            [0.8, 0],
            [0.4, 1],
          ].map((row) => row.map((value) => (dtype === "float32" ? Math.fround(value) : value))),
        );
      });
    });

    test("upper factors, transposed operands and 16-bit dtypes are correct", () => {
      const a = tensor(
        [
          [4, 2],
          [-9, 5],
        ],
        { dtype },
      );
      on(backend, true, () => {
        expect(cholesky(a, { upper: true }).toArray()).toEqual([
          [2, 1],
          [0, 2],
        ]);
        expect(cholesky(transpose(a, 0, 1)).toArray()).toEqual([
          [2, 0],
          [1, 2],
        ]);
        for (const short of ["float16", "bfloat16"] as const) {
          const l = cholesky(
            toDType(
              tensor([
                [4, 2],
                [2, 5],
              ]),
              short,
            ),
          );
          expect([l.dtype, l.toArray()]).toEqual([
            short,
            [
              [2, 0],
              [1, 2],
            ],
          ]);
        }
      });
    });
  });
}

describe.each(
  (["float32", "float64"] as const).flatMap((dtype) => (["blas", "own"] as const).map((by) => ({ dtype, by }))),
)("large matrices on cpu, $dtype, by $by", ({ dtype, by }) => {
  const { native } = cpuLibrary();
  beforeAll(() => configure(native, "products", by));
  afterAll(() => configure(native, "products", "table"));

  for (const [family, make] of Object.entries(definiteFamilies))
    test.each([false, true])(`cholesky of ${family} is accurate, upper %p`, (upper) => {
      const all = [40, 64, 65, 127, 128, 129, 192, 200, 500];
      // usually one triangle of 500 rows in each dtype: the oracle's products take half a second
      const some = usually(all, (size) => size < 500 || upper === (dtype === "float32"));
      for (const size of family === "random" ? some : [130]) {
        const a = inDType(make(size, size + 1), dtype);
        const own = on("cpu", true, () => toMatrix(cholesky(toTensor(a, dtype), { upper })));
        const l = upper ? transposed(own) : own;
        expect(l.values.findIndex((value, at) => at % size > Math.floor(at / size) && value !== 0)).toBe(-1);
        const residual = norm1(difference(a, product(l, transposed(l))));
        expect(ratio(residual, size * norm1(a), dtype, `cholesky large, by ${by}, ${family}`)).toBeLessThan(THRESHOLD);
      }
    });

  test.each([1, 64, 65, 150])("a matrix of 150 whose minor of order %i is not positive is an error", (minor) => {
    const good = inDType(definiteFamilies.random(150, 3), dtype);
    for (const value of [-1, Number.NaN]) {
      const at = (minor - 1) * 151;
      const bad = { ...good, values: good.values.map((own, index) => (index === at ? value : own)) };
      on("cpu", true, () => {
        const [factor, { factor: lost, info }] = [cholesky(toTensor(good, dtype)), choleskyEx(toTensor(bad, dtype))];
        expect(info.item()).toBe(minor);
        const [known, own] = [toMatrix(factor).values, toMatrix(lost).values];
        const rows = (minor - 1) * 150;
        expect([...own.subarray(0, rows)]).toEqual([...known.subarray(0, rows)]);
        expect(own.subarray(rows).every((element) => element === 0)).toBe(true);
      });
    }
  });
});

describe.each(["float32", "float64"] as const)("large matrices on cpu, %s, by panels", (dtype) => {
  const { native } = cpuLibrary();
  // diagonally dominant: constructing such a matrix takes time proportional to the number of its elements
  const definite = (size: number): Matrix => {
    const { values } = families.random(size, size, size);
    const lower = (i: number, j: number) => values[Math.max(i, j) * size + Math.min(i, j)];
    return inDType(
      matrix(size, size, (i, j) => (i === j ? size : lower(i, j))),
      dtype,
    );
  };
  // Comparing a million elements one by one takes the matcher a second.
  const same = (a: Float64Array, b: Float64Array) => Buffer.from(a.buffer).equals(Buffer.from(b.buffer));
  afterAll(() => configure(native, "threads", "auto"));

  test.each([false, true])("results have the same bits for any number of threads and in a batch, upper %p", (upper) => {
    for (const size of [300, 850]) {
      const one = toTensor(definite(size), dtype);
      const factor = (a: Tensor) =>
        on("cpu", true, () => Buffer.from((cholesky(a, { upper }).dataSync() as Float64Array).slice().buffer));
      const known = factor(one);
      for (const threads of ["1", "2", "3", "7"]) {
        configure(native, "threads", threads);
        expect(factor(one).equals(known)).toBe(true);
        if (size === 300)
          expect(factor(stack([one, one, one])).equals(Buffer.concat([known, known, known]))).toBe(true);
      }
    }
  });

  test("a minor of the second panel that is not positive is found; the other triangle is not read", () => {
    for (const [size, minor] of [
      [300, 97],
      [850, 130],
    ] as const) {
      const { values } = definite(size);
      const changed = (change: (i: number, j: number, value: number) => number) =>
        toTensor(
          matrix(size, size, (i, j) => change(i, j, values[i * size + j])),
          dtype,
        );
      on("cpu", true, () => {
        const known = toMatrix(cholesky(changed((_i, _j, value) => value))).values;
        const lower = toMatrix(cholesky(changed((i, j, value) => (j > i ? Number.NaN : value)))).values;
        expect(same(lower, known)).toBe(true);
        const { factor, info } = choleskyEx(
          changed((i, j, value) => (i === j && i === minor - 1 ? -1 : value)),
          { upper: true },
        );
        expect(info.item()).toBe(minor);
        const lost = toMatrix(factor).values;
        const expected = lost.map((_, at) => {
          const [i, j] = [Math.floor(at / size), at % size];
          return i < minor - 1 && j < minor - 1 ? known[j * size + i] : 0;
        });
        expect(same(lost, expected)).toBe(true);
      });
    }
  });
});

describe.each(["reference", "cpu"] as const)("gradients of both orders on %s", (backend) => {
  const a = leaf(definiteFamilies.random(3, 1));
  const b = leaf(families.random(3, 2, 5));
  const symmetric = (x: Tensor): Tensor => add(x, transpose(x, -1, -2));

  test.each([false, true])("gradients of cholesky equal finite differences, upper %p", (upper) => {
    on(backend, true, () => checkGradients((x) => cholesky(symmetric(x), { upper }), [a]));
  });

  test("gradients of cholesky of a batch equal finite differences", () => {
    const batch = leaf(definiteFamilies.random(2, 1));
    on(backend, true, () => checkGradients((x) => cholesky(stack([symmetric(x), mul(symmetric(x), 3)])), [batch]));
  });

  for (const upper of [false, true])
    test.each([false, true])(
      `gradients of solveTriangular equal finite differences, upper ${upper}, unitriangular %p`,
      (unitriangular) => {
        on(backend, true, () => checkGradients((x, y) => solveTriangular(x, y, { upper, unitriangular }), [a, b]));
      },
    );

  test("gradients of solveTriangular from the right equal finite differences, over a broadcast batch", () => {
    on(backend, true, () =>
      checkGradients(
        (x, y) => solveTriangular(x, stack([transpose(y, 0, 1), transpose(y, 0, 1)]), { upper: false, left: false }),
        [a, b],
      ),
    );
  });
});

testVariants(import.meta.path, "metal float32");
