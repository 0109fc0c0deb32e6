/**
 * isClose, allClose and equal on every backend. The expected results are PyTorch's: its definition,
 * |a − b| ≤ atol + rtol · |b|, with equal infinities close and NaN close to nothing unless equalNan is set
 * (torch.isclose's documentation, and the results of its examples).
 */
import { describe, expect, test } from "bun:test";
import { backendNames } from "../../../src/backend/names.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { whyUnavailable } from "../../../src/backend/registry.ts";
import { allClose, equal, isClose, tensor, zeros } from "../../../src/index.ts";

const usable = backendNames.filter((name) => whyUnavailable(name) === undefined);
const [inf, nan] = [Number.POSITIVE_INFINITY, Number.NaN];

for (const backend of usable) {
  const on = <Result>(body: () => Result): Result => withBackend(backend, body);

  describe(`isClose and allClose on ${backend}`, () => {
    test("closeness is relative to the magnitude of the second element", () => {
      const close = (a: number, b: number, rtol: number, atol: number) =>
        on(() => isClose(tensor([a]), tensor([b]), { rtol, atol }).toArray());
      expect(close(10, 11, 0.095, 0)).toEqual([true]); // 1 ≤ 0.095 · 11
      expect(close(11, 10, 0.095, 0)).toEqual([false]); // 1 > 0.095 · 10
      expect(close(-10, -11, 0.095, 0)).toEqual([true]);
      expect(close(1, 1.25, 0, 0.25)).toEqual([true]);
      expect(close(1, 1.2500001, 0, 0.25)).toEqual([false]);
      expect(close(1, 1, 0, 0)).toEqual([true]);
    });

    test("the default tolerances are 1e-5 of the magnitude, plus 1e-8", () => {
      // the examples of torch.isclose and torch.allclose
      expect(on(() => isClose(tensor([1, 2, 3]), tensor([1 + 1e-10, 3, 4])).toArray())).toEqual([true, false, false]);
      expect(on(() => allClose(tensor([10000, 1e-7]), tensor([10000.1, 1e-8])))).toBe(false);
      expect(on(() => allClose(tensor([10000, 1e-8]), tensor([10000.1, 1e-9])))).toBe(true);
    });

    test("infinities are close only to equal ones, regardless of the tolerance", () => {
      const [a, b] = [tensor([inf, inf, -inf, 1, inf]), tensor([inf, -inf, -inf, inf, 1])];
      expect(on(() => isClose(a, b).toArray())).toEqual([true, false, true, false, false]);
      expect(on(() => isClose(tensor([inf, 4]), tensor([inf, 4]), 0, 0).toArray())).toEqual([true, true]);
    });

    test("NaN is close only to NaN, and only with equalNan", () => {
      const [a, b] = [tensor([nan, nan, 1]), tensor([nan, 1, nan])];
      expect(on(() => isClose(a, b).toArray())).toEqual([false, false, false]);
      expect(on(() => isClose(a, b, { equalNan: true }).toArray())).toEqual([true, false, false]);
      expect(on(() => allClose(tensor([1, nan]), tensor([1, nan])))).toBe(false);
      expect(on(() => allClose(tensor([1, nan]), tensor([1, nan]), { equalNan: true }))).toBe(true);
    });

    test("integers, bools, and shapes that broadcast are compared", () => {
      expect(on(() => isClose(tensor([1n, 100n]), tensor([1n, 101n]), { rtol: 0.01 }).toArray())).toEqual([true, true]);
      expect(on(() => isClose(tensor([true, false]), tensor([true, true])).toArray())).toEqual([true, false]);
      expect(on(() => isClose(tensor([[1], [2]]), tensor([1, 2])).toArray())).toEqual([
        [true, false],
        [false, true],
      ]);
      expect(on(() => allClose(zeros([0, 3]), zeros([3])))).toBe(true);
    });

    test("equal compares shapes and elements, not bits", () => {
      expect(on(() => equal(tensor([1, 2]), tensor([1, 2])))).toBe(true);
      expect(on(() => equal(tensor([1, 2]), tensor([1, 3])))).toBe(false);
      expect(on(() => equal(tensor([1, 1]), tensor([[1, 1]])))).toBe(false);
      expect(on(() => equal(tensor([0]), tensor([-0])))).toBe(true);
      expect(on(() => equal(tensor([nan]), tensor([nan])))).toBe(false);
      expect(on(() => equal(zeros([0]), zeros([0])))).toBe(true);
      const matrix = tensor([[1, 2], [3, 4]]); // biome-ignore format: one line
      expect(on(() => equal(matrix.T.contiguous(), matrix.T))).toBe(true);
      expect(on(() => equal(tensor([2n ** 53n]), tensor([2n ** 53n + 1n])))).toBe(false);
    });
  });
}

test("different dtypes and negative tolerances are errors that name the operation", () => {
  expect(() => isClose(tensor([1]), tensor([1n]))).toThrow("isClose] expected two tensors of one dtype, got float32");
  expect(() => allClose(tensor([1]), tensor([1n]))).toThrow("allClose] expected two tensors of one dtype");
  expect(() => equal(tensor([1]), tensor([1n]))).toThrow("equal] expected two tensors of one dtype");
  expect(() => isClose(tensor([1]), tensor([1]), -1)).toThrow("expected rtol to be a number of at least 0, got -1");
  expect(() => allClose(tensor([1]), tensor([1]), { atol: nan })).toThrow("expected atol to be a number of at least 0");
});

test("the methods isClose and allClose give the same, and nothing is recorded for gradients", () => {
  const x = tensor([1, 2], { requiresGrad: true });
  expect([x.allClose(tensor([1, 2])), x.equal(tensor([1, 3]))]).toEqual([true, false]);
  expect(x.isClose(tensor([1, 3])).toArray()).toEqual([true, false]);
  expect(x.isClose(x).requiresGrad).toBe(false);
});
