/** The kernels of QR: under the checker, on the device's numeric variants, and their memory traffic. */
import { afterAll, describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { geqrf } from "../../src/linalg/qr/geqrf.ts";
import { householderProduct } from "../../src/linalg/qr/householder_product.ts";
import { ormqr } from "../../src/linalg/qr/ormqr.ts";
import { qr } from "../../src/linalg/qr/qr.ts";
import { triu } from "../../src/ops/indexing/triangle.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { expand } from "../../src/ops/view/expand.ts";
import { select } from "../../src/ops/view/slice.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { difference, families, identity, type Matrix, norm1, product, rounded, transposed } from "./matrices.ts";
import { on, places, ratio, THRESHOLD, toMatrix, toTensor } from "./run.ts";
import { checked, testVariants } from "./variants.ts";

/** Sizes that fit a threadgroup's memory, and two that are computed in blocks. */
const shapes = [
  ...([
    [1, 1],
    [2, 5],
    [5, 2],
    [17, 33],
    [40, 24],
  ] as const),
  ...([
    [130, 62],
    [70, 120],
  ] as const),
] as const;
const named = ["random", "near overflow", "rank-deficient", "near underflow", "graded rows", "zero", "diagonal"];
const matricesOf = (rows: number, columns: number): Matrix[] =>
  named.map((name) => rounded(families[name](rows, columns, 3)));

function watch<Result>(body: () => Result): { dispatches: number; read: number; written: number; result: Result } {
  const context = metalContext();
  context.wait();
  context.report({ clear: true });
  context.configure("count", true);
  const result = on("metal", true, body);
  context.wait();
  context.configure("count", false);
  const { dispatches } = context.report({ clear: true });
  const sum = (name: "device_bytes_read" | "device_bytes_written"): number =>
    dispatches.reduce((all, { counters }) => all + counters[name], 0) / 4;
  return {
    dispatches: dispatches.reduce((all, { count }) => all + count, 0),
    read: sum("device_bytes_read"),
    written: sum("device_bytes_written"),
    result,
  };
}

function checkFactors(a: Matrix, q: Matrix, r: Matrix, of: string): void {
  const scale = norm1(a) * Math.max(a.rows, a.columns);
  expect(ratio(norm1(difference(a, product(q, r))), scale, "float32", `${of}, A - QR`)).toBeLessThan(THRESHOLD);
  const unit = norm1(difference(product(transposed(q), q), identity(q.columns)));
  expect(ratio(unit, q.rows, "float32", `${of}, QᵀQ - I`)).toBeLessThan(THRESHOLD);
  for (let i = 0; i < Math.min(r.rows, r.columns); i++) expect(r.values[i * r.columns + i]).toBeGreaterThanOrEqual(0);
}

const NAME = "factors and products, also in blocks";
testVariants(import.meta.path, NAME);

describe.skipIf(!places.some(({ backend }) => backend === "metal"))("the QR decomposition on metal is accurate", () => {
  afterAll(() => metalContext().configure("count", false));

  test(NAME, () => {
    for (const [rows, columns] of shapes) {
      const all = matricesOf(rows, columns).slice(0, rows > 64 ? 2 : 7);
      const a = on("metal", true, () => stack(all.map((own) => toTensor(own, "float32"))));
      const batchOf = (body: () => Tensor): Matrix[] => {
        const result = checked(() => on("metal", true, body));
        return all.map((_, at) => toMatrix(select(result, 0, at)));
      };
      const both = checked(() => on("metal", true, () => qr(a)));
      const [q, r] = [batchOf(() => both.q), batchOf(() => both.r)];
      for (const [at, own] of all.entries()) checkFactors(own, q[at], r[at], `qr, ${named[at]}`);
      if (rows <= 64)
        expect(batchOf(() => qr(a, "r").r).map(({ values }) => [...values])).toEqual(
          r.map(({ values }) => [...values]),
        );
      if (rows <= 20) {
        const full = on("metal", true, () => qr(a, "complete"));
        const [own, long] = [batchOf(() => full.q), batchOf(() => full.r)];
        for (const [at, one] of all.entries()) checkFactors(one, own[at], long[at], `qr complete, ${named[at]}`);
      }
      const { a: factors, tau } = on("metal", true, () => geqrf(a));
      const back = batchOf(() => ormqr(factors, tau, triu(factors)));
      const down = batchOf(() => ormqr(factors, tau, a, { transpose: true }));
      const upper = batchOf(() => triu(factors));
      for (const [at, own] of all.entries()) {
        const scale = norm1(own) * Math.max(rows, columns);
        const residual = (x: Matrix): number => ratio(norm1(x), scale, "float32", `ormqr, ${named[at]}`);
        expect(residual(difference(own, back[at]))).toBeLessThan(THRESHOLD);
        expect(residual(difference(down[at], upper[at]))).toBeLessThan(THRESHOLD);
      }
      if (rows < columns) continue;
      for (const own of batchOf(() => householderProduct(factors, tau))) {
        const unit = norm1(difference(product(transposed(own), own), identity(columns)));
        expect(ratio(unit, rows, "float32", "householderProduct")).toBeLessThan(THRESHOLD);
      }
    }
  });

  test.each([
    [128, 62],
    [88, 88],
    [129, 129],
    [300, 40],
    [97, 128],
  ])("%d x %d, reduced and complete, is accurate", (rows, columns) => {
    const own = rounded(families["random"](rows, columns, 3));
    for (const mode of rows < 100 || rows === 129 ? (["reduced", "complete"] as const) : (["reduced"] as const)) {
      const { q, r } = on("metal", true, () => qr(toTensor(own, "float32"), { mode }));
      checkFactors(own, toMatrix(q), toMatrix(r), `qr ${mode}, ${rows} x ${columns}`);
    }
  });

  test.each([
    [16, 16],
    [32, 64],
    [128, 32],
  ])("%d x %d: QR moves each element once, in one dispatch", (rows, columns) => {
    const one = toTensor(rounded(families["random"](rows, columns, 5)), "float32");
    for (const batch of [1, 3]) {
      const a = on("metal", true, () => stack(Array.from({ length: batch }, () => one)));
      const count = Math.min(rows, columns);
      const sizes = {
        a: batch * rows * columns,
        q: batch * rows * count,
        r: batch * count * columns,
        tau: batch * count,
      };
      const { result: _, ...moved } = watch(() => qr(a));
      expect(moved).toEqual({ dispatches: 1, read: sizes.a, written: sizes.q + sizes.r });
      const { result, ...factored } = watch(() => geqrf(a));
      expect(factored).toEqual({ dispatches: 1, read: sizes.a, written: sizes.a + sizes.tau });
      if (rows < columns) continue;
      const { result: __, ...formed } = watch(() => householderProduct(result.a, result.tau));
      expect(formed).toEqual({ dispatches: 1, read: sizes.a + sizes.tau, written: sizes.q });
    }
  });

  test("larger matrices take as many dispatches, regardless of the batch", () => {
    const one = toTensor(rounded(families["random"](130, 62, 5)), "float32");
    const dispatches = [1, 5].map((batch) => {
      const a = on("metal", true, () => stack(Array.from({ length: batch }, () => one)));
      return watch(() => qr(a)).dispatches;
    });
    // A copy; for each of 2 blocks the panel, T, and the columns to its right; the unit matrix, 2 products, R, signs.
    expect(dispatches).toEqual([1 + 2 + 2 + 1 + 1 + 2 + 2, 1 + 2 + 2 + 1 + 1 + 2 + 2]);
  });

  test("elements that are not finite, in blocks, give NaN only in their matrix", () => {
    const good = rounded(families["random"](130, 62, 5));
    const bad = { ...good, values: good.values.map((value, at) => (at === 62 ? Number.NaN : value)) };
    const batch = on("metal", true, () => stack([toTensor(bad, "float32"), toTensor(good, "float32")]));
    const { q, r } = on("metal", true, () => qr(batch));
    expect(Number.isNaN(toMatrix(select(q, 0, 0)).values[0])).toBe(true);
    checkFactors(good, toMatrix(select(q, 0, 1)), toMatrix(select(r, 0, 1)), "qr beside NaN");
    const repeated = on("metal", true, () => qr(expand(select(batch, 0, 1), [3, 130, 62])));
    expect([...toMatrix(select(repeated.r, 0, 2)).values]).toEqual([...toMatrix(select(r, 0, 1)).values]);
  });
});
