/** QR factorizations and products of reflections, by the residuals of LAPACK's test suite (dqrt01, dqrt02, dqrt03). */
import { describe, expect, test } from "bun:test";
import { AutogradError } from "../../src/autograd/node.ts";
import { DTypeError, ShapeError } from "../../src/core/errors.ts";
import { geqrf } from "../../src/linalg/qr/geqrf.ts";
import { householderProduct } from "../../src/linalg/qr/householder_product.ts";
import { ormqr } from "../../src/linalg/qr/ormqr.ts";
import { type QrMode, qr } from "../../src/linalg/qr/qr.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { zeros } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { backward } from "../../src/ops/gradient/backward.ts";
import { triu } from "../../src/ops/indexing/triangle.ts";
import { cat, stack } from "../../src/ops/join/cat.ts";
import { sum } from "../../src/ops/reduction/sum.ts";
import { expand } from "../../src/ops/view/expand.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import { select, slice } from "../../src/ops/view/slice.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { repeats } from "../support/repeats.ts";
import { checkGradients, leaf } from "./gradients.ts";
import { difference, families, identity, type Matrix, matrix, norm1, product, transposed } from "./matrices.ts";
import { inDType, inTurn, on, places, type RealDType, ratio, THRESHOLD, toMatrix, toTensor } from "./run.ts";

/** Rows and columns: sizes at which the kernels change their method, and sizes that fit a threadgroup's memory. */
const shapes: readonly (readonly [number, number])[] = [
  ...[0, 1, 2, 3, 5, 8, 9, 16, 17, 32, 33, 64].map((size) => [size, size] as const),
  ...([
    [0, 3],
    [3, 0],
    [2, 1],
    [1, 2],
    [5, 3],
    [3, 5],
    [9, 7],
    [33, 31],
    [31, 33],
    [65, 40],
    [32, 64],
    [128, 32],
  ] as const),
];
/** Sizes that only cpu computes. */
const largeShapes: readonly (readonly [number, number])[] = [
  [100, 129],
  [129, 129],
  [300, 20],
  [200, 127],
];
const few = new Set(["5 3", "3 5", "9 9", "33 31", "31 33"]);

const shapesFor = (backend: string, family: string): readonly (readonly [number, number])[] => {
  if (backend === "cpu")
    return inTurn(family, Object.keys(families), [
      ...shapes,
      ...(family === "random" ? largeShapes : [[129, 129] as const]),
    ]);
  return family === "random" ? shapes : shapes.filter(([m, n]) => few.has(`${m} ${n}`));
};

const isUpper = ({ columns, values }: Matrix): boolean =>
  values.every((value, at) => at % columns >= Math.floor(at / columns) || value === 0);
const diagonalOf = ({ rows, columns, values }: Matrix): number[] =>
  Array.from({ length: Math.min(rows, columns) }, (_, i) => values[i * columns + i]);
const upperOf = (x: Matrix, rows: number): Matrix =>
  matrix(rows, x.columns, (i, j) => (j >= i ? x.values[i * x.columns + j] : 0));

function checkOrthonormal(q: Matrix, dtype: RealDType, of: string): void {
  const residual = norm1(difference(product(transposed(q), q), identity(q.columns)));
  expect(ratio(residual, q.rows, dtype, of)).toBeLessThan(THRESHOLD);
}

function checkResidual(residual: Matrix, a: Matrix, dtype: RealDType, of: string): void {
  const scale = norm1(a) * Math.max(a.rows, a.columns);
  expect(ratio(norm1(residual), scale, dtype, of)).toBeLessThan(THRESHOLD);
}

/** Checks Q and R as separate matrices. */
function checkFactors(a: Matrix, q: Matrix, r: Matrix, dtype: RealDType, of: string): void {
  expect(isUpper(r)).toBe(true);
  expect(diagonalOf(r).every((value) => value >= 0)).toBe(true);
  checkResidual(difference(a, product(q, r)), a, dtype, `${of}, A - QR`);
  checkOrthonormal(q, dtype, `${of}, QᵀQ - I`);
}

for (const { backend, dtype } of places) {
  describe(`the QR decomposition, ${backend} ${dtype}`, () => {
    for (const [family, make] of Object.entries(families))
      test(`qr of ${family} is accurate`, () => {
        for (const [rows, columns] of shapesFor(backend, family)) {
          const a = inDType(make(rows, columns, rows + 3 * columns), dtype);
          const input = toTensor(a, dtype);
          const both = (mode: QrMode) => {
            const { q, r } = on(backend, true, () => qr(input, { mode }));
            return [toMatrix(q), toMatrix(r)] as const;
          };
          const [q, r] = both("reduced");
          expect([q.rows, q.columns, r.rows]).toEqual([rows, Math.min(rows, columns), Math.min(rows, columns)]);
          checkFactors(a, q, r, dtype, `qr, ${family}`);
          if (rows > 70 || family !== "random") continue;
          const [full, long] = both("complete");
          expect([full.columns, long.rows]).toEqual([rows, rows]);
          checkFactors(a, full, long, dtype, `qr complete, ${family}`);
          expect([...on(backend, true, () => qr(input, "r")).r.dataSync()]).toEqual([...r.values]);
        }
      });

    for (const [family, make] of Object.entries(families))
      test(`geqrf, householderProduct and ormqr of ${family} are accurate`, () => {
        for (const [rows, columns] of shapesFor(backend, family)) {
          const a = inDType(make(rows, columns, rows + 5 * columns), dtype);
          checkReflections(a, family);
        }
      });

    const checkReflections = (a: Matrix, family: string): void => {
      const count = Math.min(a.rows, a.columns);
      const run = <Result>(body: () => Result): Result => on(backend, true, body);
      const own = run(() => geqrf(toTensor(a, dtype)));
      const r = upperOf(toMatrix(own.a), a.rows);
      const left = toMatrix(run(() => ormqr(own.a, own.tau, toTensor(r, dtype))));
      checkResidual(difference(a, left), a, dtype, `ormqr, A - QR, ${family}`);
      const back = toMatrix(run(() => ormqr(own.a, own.tau, toTensor(a, dtype), { transpose: true })));
      checkResidual(difference(back, r), a, dtype, `ormqr, QᵀA - R, ${family}`);
      const wide = inDType(families.random(3, a.rows, 8), dtype);
      const right = (transpose: boolean) =>
        toMatrix(run(() => ormqr(own.a, own.tau, toTensor(wide, dtype), { left: false, transpose })));
      if (a.rows >= a.columns) {
        const q = toMatrix(run(() => householderProduct(own.a, own.tau)));
        checkOrthonormal(q, dtype, `householderProduct, ${family}`);
        checkResidual(difference(a, product(q, upperOf(r, count))), a, dtype, `householderProduct, ${family}`);
        const part = matrix(3, count, (i, j) => right(false).values[i * a.rows + j]);
        if (few.has(`${a.rows} ${a.columns}`))
          checkResidual(difference(part, product(wide, q)), wide, dtype, "ormqr, CQ");
      }
      const there = toTensor(right(true), dtype);
      const again = toMatrix(run(() => ormqr(own.a, own.tau, there, false)));
      checkResidual(difference(again, wide), wide, dtype, "ormqr, C - CQᵀQ");
    };

    test("batches of more matrices than threads or lanes are accurate", () => {
      const all = [
        ...([
          [repeats({ usual: backend === "metal" ? 70 : 500, all: 500 }), 16, 16],
          [repeats({ usual: backend === "metal" ? 12 : 100, all: 100 }), 32, 64],
          [7, 128, 32],
        ] as const),
        ...(backend === "cpu"
          ? ([
              [64, 64, 64],
              [33, 31, 8],
              [21, 8, 31],
              [100, 48, 48],
              [3, 130, 70],
            ] as const)
          : []),
      ];
      for (const [batch, rows, columns] of all) {
        if (backend === "reference" && batch > 50) continue;
        const values = inDType(families.random(batch * rows, columns, batch), dtype);
        const input = reshape(toTensor(values, dtype), [batch, rows, columns]);
        const { q, r } = on(backend, true, () => qr(input));
        for (let at = 0; at < batch; at += Math.ceil(batch / 20)) {
          const of = (x: Tensor): Matrix => toMatrix(select(x, 0, at));
          checkFactors(of(input), of(q), of(r), dtype, `qr, batch of ${batch} x ${rows} x ${columns}`);
        }
      }
    });

    test("a matrix's result does not depend on the others of its batch", () => {
      const scales = [1, 1e30, 1e-30, Number.NaN, 1e19, 0, 1e-25, Number.POSITIVE_INFINITY];
      for (const [rows, columns] of [
        [5, 4],
        [20, 20],
        [7, 12],
      ] as const) {
        const a = families.random(rows, columns, 4);
        const input = tensor(Float64Array.from(scales.flatMap((scale) => [...a.values].map((x) => x * scale))), {
          dtype,
        });
        const batch = reshape(input, [scales.length, rows, columns]);
        on(backend, true, () => {
          const together = qr(batch);
          for (const [at, scale] of scales.entries()) {
            const of = (x: Tensor): Matrix => toMatrix(select(x, 0, at));
            if (Number.isFinite(scale))
              checkFactors(of(batch), of(together.q), of(together.r), dtype, `qr, batch of scales, ${scale}`);
            const alone = qr(expand(select(batch, 0, at), [scales.length, rows, columns]));
            expect([...toMatrix(select(together.q, 0, at)).values]).toEqual([
              ...toMatrix(select(alone.q, 0, 3)).values,
            ]);
            expect([...toMatrix(select(together.r, 0, at)).values]).toEqual([
              ...toMatrix(select(alone.r, 0, 3)).values,
            ]);
          }
        });
      }
    });

    test("geqrf of batches is accurate", () => {
      for (const [rows, columns] of [
        [9, 6],
        [6, 9],
        [20, 20],
      ] as const) {
        const input = reshape(toTensor(inDType(families.random(20 * rows, columns, 9), dtype), dtype), [
          20,
          rows,
          columns,
        ]);
        const product = on(backend, true, () => {
          const { a, tau } = geqrf(input);
          return ormqr(a, tau, triu(a));
        });
        for (let at = 0; at < 20; at++) {
          const own = toMatrix(select(input, 0, at));
          checkResidual(difference(own, toMatrix(select(product, 0, at))), own, dtype, "geqrf, batch of 20");
        }
      }
    });

    test("qr equals known values", () => {
      on(backend, true, () => {
        const column = tensor([[3], [4]], { dtype });
        const { q, r } = qr(column);
        const [x, y] = dtype === "float32" ? [Math.fround(0.6), Math.fround(0.8)] : [0.6, 0.8];
        expect([[...q.shape], r.toArray()]).toEqual([[2, 1], [[5]]]);
        expect(Math.abs(toMatrix(q).values[0] - x)).toBeLessThan(1e-7);
        expect(Math.abs(toMatrix(q).values[1] - y)).toBeLessThan(1e-7);
        const own = geqrf(column);
        expect([own.a.toArray(), toMatrix(own.tau).values[0].toFixed(6)]).toEqual([[[-5], [0.5]], "1.600000"]);
        // columns of zeros and of multiples of a unit vector: reflections that are identities
        const diagonal = tensor(
          [
            [0, 2, 0],
            [0, 0, -3],
            [0, 0, 0],
          ],
          { dtype },
        );
        expect(geqrf(diagonal).tau.toArray()).toEqual([0, 0, 0]);
        expect(qr(diagonal).r.toArray()).toEqual([
          [0, 2, 0],
          [0, 0, -3],
          [0, 0, 0],
        ]);
        expect(qr(tensor([[-2]], { dtype })).q.toArray()).toEqual([[-1]]);
      });
      // the determinant of the Hilbert matrix of order 5 is 1 / 266716800000
      const { r } = on(backend, true, () => qr(toTensor(inDType(families.hilbert(5, 5, 0), dtype), dtype)));
      const determinant = diagonalOf(toMatrix(r)).reduce((all, own) => all * own, 1);
      expect(Math.abs(determinant * 266716800000 - 1)).toBeLessThan(dtype === "float64" ? 1e-10 : 0.2);
    });

    test("elements that are not finite give NaN, and the call returns", () => {
      for (const value of [Number.NaN, Number.POSITIVE_INFINITY])
        for (const [rows, columns] of [
          [4, 4],
          [40, 3],
          [70, 70],
        ] as const) {
          if (backend !== "cpu" && rows > 64) continue;
          const a = families.random(rows, columns, 3);
          a.values[columns] = value;
          const { q, r } = on(backend, true, () => qr(toTensor(a, dtype)));
          expect(Number.isNaN(toMatrix(q).values[0])).toBe(true);
          expect(diagonalOf(toMatrix(r)).every(Number.isFinite)).toBe(false);
        }
    });

    test("views, transposed operands and 16-bit dtypes are correct", () => {
      const a = inDType(families.random(6, 8, 5), dtype);
      on(backend, true, () => {
        const input = toTensor(a, dtype);
        const turned = transpose(input, 0, 1);
        const there = toTensor(transposed(a), dtype);
        expect(qr(turned).r.toArray()).toEqual(qr(there).r.toArray());
        const part = slice(input, { start: 2 });
        const copy = tensor(part.toArray() as number[][], { dtype });
        expect(geqrf(part).a.toArray()).toEqual(geqrf(copy).a.toArray());
        const { a: own, tau } = geqrf(turned);
        expect(ormqr(own, tau, turned, { transpose: true }).toArray()).toEqual(
          ormqr(own, tau, there, { transpose: true }).toArray(),
        );
        for (const short of ["float16", "bfloat16"] as const) {
          const { q, r } = qr(toDType(tensor([[3], [4]]), short));
          expect([q.dtype, r.dtype, r.toArray()]).toEqual([short, short, [[5]]]);
          const reflections = geqrf(toDType(tensor([[3], [4]]), short));
          expect(reflections.a.toArray()).toEqual([[-5], [0.5]]);
          expect(householderProduct(reflections.a, reflections.tau).dtype).toBe(short);
        }
      });
    });
  });
}

test("qr of 500 x 500 is accurate", () => {
  const a = families.random(500, 500, 2);
  const { q, r } = on("cpu", true, () => qr(toTensor(a, "float64")));
  checkFactors(a, toMatrix(q), toMatrix(r), "float64", "qr, 500 x 500");
});

test("qr of 10000 x 8, in parts, is accurate", () => {
  for (const dtype of ["float64", "float32"] as const) {
    const a = inDType(families.random(10000, 8, 2), dtype);
    const { q, r } = on("cpu", true, () => qr(toTensor(a, dtype)));
    checkFactors(a, toMatrix(q), toMatrix(r), dtype, "qr, 10000 x 8");
  }
});

test("incompatible shapes and dtypes are rejected", () => {
  const a = zeros([2, 3, 4]);
  const codeOf = (body: () => unknown): unknown => {
    const error = errorOf(body);
    expect(error instanceof ShapeError || error instanceof DTypeError).toBe(true);
    return (error as ShapeError).code;
  };
  expect(codeOf(() => qr(zeros([3])))).toBe("wrongRank");
  expect(codeOf(() => qr(zeros([3, 3], { dtype: "int32" })))).toBe("notAFloat");
  expect(codeOf(() => householderProduct(a, zeros([2, 3])))).toBe("wide");
  expect(codeOf(() => householderProduct(transpose(a, 1, 2), zeros([2, 4])))).toBe("shapesDiffer");
  expect(codeOf(() => householderProduct(transpose(a, 1, 2), zeros([3])))).toBe("shapesDiffer");
  expect(codeOf(() => ormqr(a, zeros([2, 3]), zeros([2, 4, 4])))).toBe("shapesDiffer");
  expect(codeOf(() => ormqr(a, zeros([2, 3]), zeros([2, 3, 4]), { left: false }))).toBe("shapesDiffer");
  expect(codeOf(() => ormqr(a, zeros([2, 3], { dtype: "float64" }), zeros([2, 3, 4])))).toBe("dtypesDiffer");
});

describe.each(["reference", "cpu"] as const)("gradients of both orders on %s", (backend) => {
  const check = (compute: (...x: Tensor[]) => Tensor, ...x: Matrix[]): void =>
    on(backend, true, () => checkGradients(compute, x.map(leaf)));
  const flat = (...all: Tensor[]): Tensor =>
    cat(
      all.map((x) => reshape(x, [-1, 1])),
      0,
    );
  const make = (rows: number, columns: number, seed = 1): Matrix => families.random(rows, columns, seed);

  for (const [rows, columns] of [
    [3, 3],
    [4, 2],
    [2, 4],
    [1, 2],
  ] as const) {
    for (const mode of ["reduced", "r", "complete"] as const) {
      if (mode === "complete" && rows > columns) continue;
      test(`gradients of qr equal finite differences, ${rows} x ${columns}, ${mode}`, () => {
        const results = (x: Tensor): Tensor[] => Object.values(qr(x, { mode })).filter(({ size }) => size > 0);
        check((x) => flat(...results(x)), make(rows, columns));
        check((x) => qr(x, { mode }).r, make(rows, columns));
        if (mode !== "r") check((x) => qr(x, { mode }).q, make(rows, columns));
      });
    }

    test(`gradients of geqrf equal finite differences, ${rows} x ${columns}`, () => {
      check((x) => flat(geqrf(x).a, geqrf(x).tau), make(rows, columns));
      check((x) => reshape(geqrf(x).tau, [-1, 1]), make(rows, columns));
    });

    test(`gradients of householderProduct and ormqr equal finite differences, ${rows} x ${columns}`, () => {
      const count = Math.min(rows, columns);
      const scales = make(1, count, 7);
      if (rows >= columns)
        check((x, tau) => householderProduct(x, reshape(tau, [count])), make(rows, columns, 3), scales);
      for (const transpose of [false, true]) {
        const options = { transpose };
        check((x, tau, c) => ormqr(x, reshape(tau, [count]), c, options), make(rows, columns), scales, make(rows, 2));
        const left = { ...options, left: false };
        check((x, tau, c) => ormqr(x, reshape(tau, [count]), c, left), make(rows, columns), scales, make(2, rows));
      }
    });
  }

  test("fewer reflections than columns have gradients", () => {
    check((x, tau) => householderProduct(x, reshape(tau, [1])), make(3, 2), make(1, 1));
  });

  test("reflections that are identities have gradients", () => {
    const none = matrix(1, 2, (_, j) => (j === 0 ? 0 : 1.5));
    check((x, tau) => householderProduct(x, reshape(tau, [2])), make(3, 2), none);
  });

  test("a batch has gradients of both orders", () => {
    check((x) => flat(...Object.values(qr(stack([x, transpose(x, 0, 1)])))), make(3, 3));
    check((x) => flat(...Object.values(geqrf(stack([x, transpose(x, 0, 1)])))), make(3, 3));
  });

  test("Q of mode complete has no gradient if there are more rows than columns", () => {
    const x = leaf(make(3, 2));
    const failing = () => on(backend, true, () => backward(sum(qr(x, { mode: "complete" }).r)));
    const error = errorOf(failing) as AutogradError;
    expect(error).toBeInstanceOf(AutogradError);
    expect(error.code).toBe("notDifferentiable");
  });
});
