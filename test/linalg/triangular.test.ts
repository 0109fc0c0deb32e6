/** Triangular systems with operands in every layout, from either side, with and without a BLAS. */
import { describe, expect, test } from "bun:test";
import { configure, cpuLibrary, defaultBlas } from "../../src/backend/cpu/loader.ts";
import { solveTriangular } from "../../src/linalg/triangular/triangular.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { difference, families, type Matrix, matrix, norm1, product, transposed } from "./matrices.ts";
import { inDType, on, places, type RealDType, ratio, THRESHOLD, toTensor } from "./run.ts";

const { native } = cpuLibrary();
const defaults = defaultBlas().join("\n");

/** The ways to compute: each backend, and the cpu backend both with and without a BLAS. */
const ways = places.flatMap(({ backend, dtype }) => {
  const names = backend === "cpu" ? [defaults, "none"] : [defaults];
  return names.map((blas) => ({
    backend,
    dtype,
    blas,
    name: `${backend} ${dtype}${blas === "none" ? ", no BLAS" : ""}`,
  }));
});

/** A triangle with NaN in the elements that are not read. */
function triangle(
  size: number,
  seed: number,
  { upper, unitriangular }: { upper: boolean; unitriangular: boolean },
): Matrix {
  const { values } = families.random(size, size, seed);
  return matrix(size, size, (i, j) => {
    if (i === j) return unitriangular ? Number.NaN : 1 + Math.abs(values[i * size + j]);
    return (upper ? j > i : j < i) ? values[i * size + j] / size : Number.NaN;
  });
}

/** The elements of the triangle that is read. */
const read = (a: Matrix): Matrix => ({
  ...a,
  values: a.values.map((value, at) => {
    if (!Number.isNaN(value)) return value;
    return at % (a.columns + 1) === 0 ? 1 : 0;
  }),
});

/** The matrices as a batch, row-major or column-major. */
function batchOf(all: readonly Matrix[], dtype: RealDType, isTurned: boolean): Tensor {
  const own = stack(all.map((x) => toTensor(isTurned ? transposed(x) : x, dtype)));
  return isTurned ? transpose(own, 1, 2) : own;
}

const flags = [false, true];

describe.each(ways)("solveTriangular, $name", ({ backend, dtype, blas }) => {
  test.each([5, 40, 100].filter((size) => size <= 64 || backend !== "metal"))(
    "solveTriangular of %i is accurate",
    (size) => {
      configure(native, "blas", blas);
      for (const upper of flags)
        for (const unitriangular of flags)
          for (const left of flags) {
            const factors = [1, 2].map((seed) => inDType(triangle(size, seed, { upper, unitriangular }), dtype));
            const [rows, columns] = left ? [size, 70] : [70, size];
            const sides = [3, 4].map((seed) => inDType(families.random(rows, columns, seed), dtype));
            for (const isATurned of flags)
              for (const isBTurned of flags) {
                const [a, b] = [batchOf(factors, dtype, isATurned), batchOf(sides, dtype, isBTurned)];
                const x = on(backend, true, () => solveTriangular(a, b, { upper, left, unitriangular }));
                const all = Float64Array.from(x.dataSync() as ArrayLike<number>);
                for (const at of [0, 1]) {
                  const values = all.slice(at * rows * columns, (at + 1) * rows * columns);
                  const own: Matrix = { rows, columns, values };
                  const factor = read(factors[at]);
                  const back = left ? product(factor, own) : product(own, factor);
                  const scale = norm1(factor) * norm1(own);
                  expect(ratio(norm1(difference(back, sides[at])), scale, dtype)).toBeLessThan(THRESHOLD);
                }
              }
          }
      configure(native, "blas", defaults);
    },
  );

  test("a zero on the diagonal divides, and 0 over a denormal number is 0", () => {
    configure(native, "blas", blas);
    const tiny = dtype === "float32" ? 2 ** -140 : 2 ** -1060;
    on(backend, true, () => {
      const a = tensor(
        [
          [0, 0],
          [1, 2],
        ],
        { dtype },
      );
      const first = (b: number[][]) => solveTriangular(a, tensor(b, { dtype }), { upper: false }).dataSync()[0];
      expect([first([[1], [0]]), first([[0], [0]])]).toEqual([Number.POSITIVE_INFINITY, Number.NaN]);
      if (backend === "metal") return; // the device may flush denormals
      const small = tensor(
        [
          [tiny, 0],
          [0, 1],
        ],
        { dtype },
      );
      expect(solveTriangular(small, tensor([[0], [3]], { dtype }), { upper: false }).toArray()).toEqual([[0], [3]]);
      const many = stack(Array.from({ length: 16 }, () => small));
      const sides = stack(Array.from({ length: 16 }, () => tensor([[0], [3]], { dtype })));
      expect(solveTriangular(many, sides, { upper: false }).toArray()).toEqual(
        Array.from({ length: 16 }, () => [[0], [3]]),
      );
    });
    configure(native, "blas", defaults);
  });
});
