/** Singular value decompositions, by the residuals of LAPACK's test suite (dbdt01, dort01). */
import { describe, expect, test } from "bun:test";
import { configure, cpuLibrary, defaultBlas } from "../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../src/backend/cpu/report.ts";
import { LinAlgError } from "../../src/core/errors.ts";
import { svd, svdvals } from "../../src/linalg/svd/svd.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { mul } from "../../src/ops/elementwise/arithmetic.ts";
import { backward } from "../../src/ops/gradient/backward.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { matmul } from "../../src/ops/matmul/matmul.ts";
import { sum } from "../../src/ops/reduction/sum.ts";
import { expand } from "../../src/ops/view/expand.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import { narrow, select } from "../../src/ops/view/slice.ts";
import { unsqueeze } from "../../src/ops/view/squeeze.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { repeats } from "../support/repeats.ts";
import { checkGradients, leaf } from "./gradients.ts";
import { families, type Matrix, matrix } from "./matrices.ts";
import { inDType, inTurn, on, places, type RealDType, sizes, toMatrix, toTensor } from "./run.ts";
import { checkFactors, checkSvd } from "./svd.ts";
import { checked, testVariants } from "./variants.ts";

type Shape = readonly [rows: number, columns: number];

const squares = (of: readonly number[]): Shape[] => of.map((size) => [size, size]);
const rectangles: readonly Shape[] = [
  [0, 3],
  [3, 0],
  [1, 7],
  [7, 1],
  [17, 33],
  [33, 17],
];
const few: readonly Shape[] = [...squares([2, 3, 17, 33]), [9, 4], [20, 34]];

/** The shapes of random matrices, and those of the other families. */
const shapesOn: Readonly<Record<string, readonly [random: readonly Shape[], others: readonly Shape[]]>> = {
  reference: [[...squares([0, 1, 2, 3, 8, 17]), ...rectangles], few.slice(0, 3)],
  metal: [[...squares([0, 1, 2, 4, 5, 9, 16, 31, 33, 64]), ...rectangles, [63, 40], [20, 100]], few],
  cpu: [
    [...squares([...sizes, 65, 100, 129]), ...rectangles, [130, 65], [65, 130], [500, 40], [40, 500]],
    [...few, ...squares([32, 34, 65]), [100, 20], [10, 41], [90, 40], [65, 130]],
  ],
};

/**
 * The number and size of matrices. On metal they run without the checker, because it checks smaller matrices in other
 * tests.
 */
const batchesOn: Readonly<Record<string, readonly Shape[]>> = {
  reference: [[5, 4]],
  metal: [
    [repeats({ usual: 10, all: 100 }), 32],
    [60, 8],
  ],
  cpu: [
    [repeats({ usual: 24, all: 100 }), 32],
    [repeats({ usual: 70, all: 500 }), 16],
    [5, 70],
  ],
};

const numbers = (x: Tensor): number[] => Array.from(x.dataSync() as Float64Array);
const filled = (rows: readonly (readonly number[])[], dtype: RealDType): Tensor =>
  tensor(rows as number[][], { dtype });
const epsilon = { float32: 2 ** -23, float64: 2 ** -52 };

for (const { backend, dtype } of places)
  describe(`svd, ${backend} ${dtype}`, () => {
    const run = <Result>(body: () => Result): Result => checked(() => on(backend, true, body));

    for (const [family, make] of Object.entries(families))
      test(`svd of ${family} is accurate`, () => {
        const shapes = shapesOn[backend][family === "random" ? 0 : 1];
        for (const [rows, columns] of inTurn(family, Object.keys(families), shapes)) {
          const a = inDType(make(rows, columns, rows + 1), dtype);
          run(() => checkSvd(a, dtype, false, `svd, ${family}`));
          if (rows !== columns) run(() => checkSvd(a, dtype, true, `svd, ${family}, full`));
        }
      });

    test("svdvals are the values of svd", () => {
      for (const [rows, columns] of few) {
        const a = toTensor(families.random(rows, columns, 5), dtype);
        const [own, values] = run(() => [numbers(svdvals(a)), numbers(svd(a).s)]);
        for (const [k, value] of own.entries()) expect(value / values[k]).toBeCloseTo(1, dtype === "float64" ? 13 : 5);
      }
    });

    test("known singular values are found", () => {
      const relative = (a: Matrix, expected: readonly number[], bound: number): void => {
        const values = run(() => numbers(svdvals(toTensor(inDType(a, dtype), dtype))));
        expect(values).toHaveLength(expected.length);
        for (const [k, value] of values.entries())
          expect(Math.abs(value / expected[k] - 1)).toBeLessThan(bound * epsilon[dtype]);
      };
      // −1, 2, −1 on the diagonals: 4 sin²(k π / (2 (n + 1))).
      const second = matrix(9, 9, (i, j) => (i === j ? 2 : Number(Math.abs(i - j) === 1) * -1));
      relative(
        second,
        Array.from({ length: 9 }, (_, k) => 4 * Math.sin(((9 - k) * Math.PI) / 20) ** 2),
        100,
      );
      // Powers of two in any order are exact to the last bit.
      const powers = [4, 1, 32, 0.5, 8];
      relative(
        matrix(5, 7, (i, j) => (j === 6 - i ? powers[i] : 0)),
        [32, 8, 4, 1, 0.5],
        1,
      );
      // Columns whose lengths differ by orders of magnitude: for each scale the singular values are 5 and |det| / 5.
      for (const tiny of dtype === "float64" ? [1e-100, 1e-12] : [2 ** -80, 2 ** -40])
        relative(
          matrix(2, 2, (i, j) => [3, tiny, 4, 2 * tiny][2 * i + j]),
          [5, (2 * tiny) / 5],
          8,
        );
    });

    test("small singular values of matrices with scaled columns have all digits", () => {
      const size = 12;
      const b = families.random(size, size, 3);
      const graded = (): Matrix =>
        matrix(size, size, (i, j) => (dtype === "float32" ? Math.fround : Number)(b.values[i * size + j]) * 4 ** -j);
      const exact = on("reference", true, () => numbers(svdvals(toTensor(graded(), "float64"))));
      const one = toTensor(graded(), dtype);
      const alone = run(() => numbers(svdvals(one)));
      const together = run(() => numbers(select(svdvals(stack(Array.from({ length: 16 }, () => one))), 0, 15)));
      expect(exact[size - 1] / exact[0]).toBeLessThan(1e-6);
      for (const own of [alone, together])
        for (const [k, value] of own.entries())
          expect(Math.abs(value / exact[k] - 1)).toBeLessThan(200 * epsilon[dtype]);
    });

    test("the product of the singular values is |det|: Kahan's matrix", () => {
      const [size, sine] = [8, 0.8];
      const kahan = matrix(size, size, (i, j) => (i > j ? 0 : sine ** i * (i === j ? 1 : -0.6)));
      const values = run(() => numbers(svdvals(toTensor(inDType(kahan, dtype), dtype))));
      const determinant = sine ** ((size * (size - 1)) / 2);
      const found = values.reduce((product, value) => product * value, 1);
      expect(Math.abs(found / determinant - 1)).toBeLessThan(200 * epsilon[dtype]);
    });

    test("infinite and NaN elements are errors", () => {
      for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
        const good = filled(
          [
            [1, 2],
            [3, 4],
          ],
          dtype,
        );
        const bad = filled(
          [
            [1, 2],
            [value, 4],
          ],
          dtype,
        );
        for (const call of [svd, svdvals])
          run(() => {
            const error = errorOf(() => {
              const found = call(stack([stack([good, good]), stack([good, bad])]));
              numbers("s" in found ? found.s : found); // a device reports errors when its results are read
            }) as LinAlgError;
            expect(error).toBeInstanceOf(LinAlgError);
            expect(error.batch).toEqual([1, 1]);
            expect(error.message).toBe(
              `[${call.name}] the matrix at [1, 1] of the batch has elements that are infinite or NaN`,
            );
          });
      }
    });

    test("views and 16-bit dtypes are correct", () => {
      const a = toTensor(families.random(7, 5, 4), dtype);
      const views = {
        transposed: transpose(a, 0, 1),
        narrow: narrow(a, 0, 2, 4),
        repeated: expand(narrow(a, 0, 0, 1), [3, 5]),
      };
      for (const [name, view] of Object.entries(views)) {
        const { u, s, vh } = run(() => svd(view, false));
        checkFactors(
          toMatrix(view),
          { u: toMatrix(u), s: Float64Array.from(numbers(s)), vh: toMatrix(vh) },
          dtype,
          name,
        );
      }
      for (const short of ["float16", "bfloat16"] as const) {
        const { u, s, vh } = run(() =>
          svd(
            toDType(
              filled(
                [
                  [0, 2],
                  [3, 0],
                ],
                dtype,
              ),
              short,
            ),
          ),
        );
        expect([u, s, vh].map((x) => [x.dtype, x.toArray()])).toEqual([
          [
            short,
            [
              [0, 1],
              [1, 0],
            ],
          ],
          [short, [3, 2]],
          [
            short,
            [
              [1, 0],
              [0, 1],
            ],
          ],
        ]);
      }
    });

    test("drawn batches are decomposed accurately", () => {
      for (const [count, size] of batchesOn[backend]) {
        const matrices = Array.from({ length: count }, (_, at) =>
          families[at % 5 === 4 ? "rank-deficient" : "random"](size, size + (count % 3), at + 1),
        );
        const list = matrices.map((own) => inDType(own, dtype));
        const whole = stack(list.map((own) => toTensor(own, dtype)));
        const { u, s, vh } = on(backend, true, () => svd(whole, false));
        for (const [at, own] of list.entries()) {
          const part = (x: Tensor) => select(x, 0, at);
          const values = Float64Array.from(numbers(part(s)));
          checkFactors(
            own,
            { u: toMatrix(part(u)), s: values, vh: toMatrix(part(vh)) },
            dtype,
            `batch ${count}x${size}`,
          );
        }
        // A matrix has the same result, bit for bit, at any position in a batch.
        const again = on(backend, true, () => svd(narrow(whole, 0, 1, count - 1), false));
        for (const name of ["u", "s", "vh"] as const)
          expect(numbers(again[name])).toEqual(numbers(narrow({ u, s, vh }[name], 0, 1, count - 1)));
      }
      for (const shape of [
        [0, 3, 2],
        [2, 0, 0],
        [2, 0, 3],
      ]) {
        const { u, s, vh } = run(() => svd(reshape(tensor([], { dtype }), shape)));
        const [count, rows, columns] = shape as [number, number, number];
        expect([u.shape, s.shape, vh.shape]).toEqual([
          [count, rows, rows],
          [count, Math.min(rows, columns)],
          [count, columns, columns],
        ]);
        if (count > 0 && columns > 0)
          expect(select(vh, 0, 1).toArray()).toEqual([
            [1, 0, 0],
            [0, 1, 0],
            [0, 0, 1],
          ]);
      }
    });

    test("one batch may have all families", () => {
      const own: readonly Shape[] =
        backend === "cpu"
          ? [
              [1, 1],
              [3, 3],
              [8, 8],
              [17, 17],
              [32, 32],
              [20, 12],
              [12, 20],
              [40, 33],
            ]
          : [[5, 4]];
      for (const [rows, columns] of own) {
        const list = Object.values(families).map((make) => inDType(make(rows, columns, 6), dtype));
        for (const full of rows === columns ? [false] : [false, true]) {
          const { u, s, vh } = run(() => svd(stack(list.map((one) => toTensor(one, dtype))), full));
          for (const [at, one] of list.entries()) {
            const part = (x: Tensor) => select(x, 0, at);
            const found = { u: toMatrix(part(u)), s: Float64Array.from(numbers(part(s))), vh: toMatrix(part(vh)) };
            checkFactors(one, found, dtype, `batch of ${Object.keys(families)[at]}`);
          }
        }
      }
    });

    test("a zero matrix has unit vectors", () => {
      const { u, s, vh } = run(() => svd(reshape(tensor([0, 0, 0, 0, 0, 0], { dtype }), [3, 2])));
      expect(u.toArray()).toEqual([
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
      ]);
      expect(s.toArray()).toEqual([0, 0]);
      expect(vh.toArray()).toEqual([
        [1, 0],
        [0, 1],
      ]);
    });
  });

for (const { backend, dtype } of places.filter((place) => place.backend === "metal"))
  test("svd on a variant of the device", () => {
    for (const [family, make] of Object.entries(families))
      for (const [rows, columns] of family === "random" ? few : few.slice(1, 2))
        on(backend, true, () =>
          checkSvd(inDType(make(rows, columns, 2), dtype), dtype, true, `svd, ${family}, variant`),
        );
  });
test.each(["libraries", "none"])(
  "cpu, LAPACK of %s: larger matrices are accurate, and elements that are not finite are found",
  (blas) => {
    const { native } = cpuLibrary();
    const defaults = defaultBlas().join("\n");
    configure(native, "blas", blas === "none" ? blas : defaults);
    for (const dtype of ["float32", "float64"] as const)
      for (const [rows, columns] of [
        [40, 40],
        [70, 50],
        [90, 4],
      ] as const) {
        for (const family of ["random", "rank-deficient", "graded rows", "near overflow", "zero"]) {
          const a = inDType(families[family](rows, columns, 2), dtype);
          on("cpu", true, () => checkSvd(a, dtype, true, `svd, ${family}, LAPACK of ${blas}`));
        }
        const bad = families.random(rows, columns, 2);
        for (const at of [0, bad.values.length - 1]) {
          const values = bad.values.with(at, Number.NaN);
          const error = errorOf(() => on("cpu", true, () => svdvals(toTensor({ ...bad, values }, dtype))));
          expect(error).toBeInstanceOf(LinAlgError);
        }
      }
    configure(native, "blas", defaults);
  },
);

testVariants(import.meta.path, "svd on a variant of the device");

test.each(["float32", "float64"] as const)("cpu %s computes small matrices in lanes only", (dtype) => {
  // Matrices that do not fill the lanes are computed one at a time, with similar errors but different bits. If a
  // vector has at most two lanes, one matrix fills enough of it, and is computed in lanes.
  const { isa } = cpuInfo(cpuLibrary().native);
  const staysInLanes = dtype === "float64" && (isa === "baseline" || process.arch === "arm64");
  const list = Array.from({ length: 16 }, (_, at) => toTensor(families.random(17, 17, at + 1), dtype));
  const together = on("cpu", true, () => svdvals(stack(list)));
  for (const [at, one] of list.entries()) {
    const alone = on("cpu", true, () => numbers(svdvals(one)));
    expect(Bun.deepEquals(numbers(select(together, 0, at)), alone)).toBe(staysInLanes);
  }
});

describe.each(["reference", "cpu"] as const)("gradients of both orders on %s", (backend) => {
  const shapes: Shape[] = [
    [3, 3],
    [4, 2],
    [2, 4],
  ];
  const run = (compute: (x: Tensor) => Tensor, x: Tensor): void =>
    on(backend, true, () => checkGradients(compute, [x]));

  for (const [rows, columns] of shapes) {
    const a = leaf(families.random(rows, columns, 3));
    const what = `${rows} x ${columns}`;

    test(`gradients of svdvals equal finite differences, ${what}`, () => run((x) => svdvals(x), a));

    // Functions that no choice of signs changes: U diag(s) Vᵀ itself, and projections onto vectors.
    for (const full of [false, true])
      test(`gradients of svd equal finite differences, ${what}, full ${full}`, () => {
        const count = Math.min(rows, columns);
        run((x) => {
          const { u, s, vh } = svd(x, full);
          const [left, right] = [narrow(u, -1, 0, count), narrow(vh, -2, 0, count)];
          return matmul(mul(left, unsqueeze(mul(s, s), -2)), right);
        }, a);
        run((x) => {
          const first = narrow(svd(x, full).u, -1, 0, 1);
          return matmul(first, transpose(first, -2, -1));
        }, a);
        run((x) => {
          const last = narrow(svd(x, full).vh, -2, count - 1, 1);
          return matmul(transpose(last, -2, -1), last);
        }, a);
      });
  }

  test("a batch has gradients of both orders", () => {
    const a = leaf(families.random(3, 2, 3));
    run((x) => {
      const { u, s, vh } = svd(stack([x, mul(x, x)]), false);
      return matmul(mul(u, unsqueeze(mul(s, s), -2)), vh);
    }, a);
  });

  test("gradients of repeated and zero singular values are finite", () => {
    on(backend, true, () => {
      for (const values of [
        [1, 1, 1],
        [2, 0, 0],
        [0, 0, 0],
      ]) {
        const a = leaf(matrix(3, 3, (i, j) => (i === j ? values[i] : 0)));
        backward(sum(svdvals(a)));
        expect(a.grad!.toArray()).toEqual([
          [1, 0, 0],
          [0, 1, 0],
          [0, 0, 1],
        ]);
      }
    });
  });
});
