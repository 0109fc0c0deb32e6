/**
 * Replacing elements by indices: which of several values for one element wins, where gradients go, and every integer
 * dtype of an index.
 */
import { describe, expect, test } from "bun:test";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { mul } from "../../../src/ops/elementwise/arithmetic.ts";
import { embedding } from "../../../src/ops/embedding/embedding.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gather, indexSelect, takeAlongDim } from "../../../src/ops/indexing/gather.ts";
import type { IndexDType } from "../../../src/ops/indexing/indices.ts";
import { oneHot } from "../../../src/ops/indexing/one_hot.ts";
import { scatter } from "../../../src/ops/indexing/scatter.ts";
import { indexAdd, scatterAdd } from "../../../src/ops/indexing/scatter_add.ts";
import { crossEntropy } from "../../../src/ops/loss/cross_entropy.ts";
import { sum } from "../../../src/ops/reduction/sum.ts";
import { expand } from "../../../src/ops/view/expand.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";

const on = <Result>(backend: BackendName, body: () => Result): Result =>
  withStrict(true, () => withBackend(backend, body));

const leaf = (values: readonly number[][]): Tensor => tensor(values as number[][], { requiresGrad: true });
const numbers = (x: Tensor): unknown => x.toArray();

describe.each(tested)("scatter on %s", (backend) => {
  test("the last of several indices wins, and receives the gradient", () =>
    on(backend, () => {
      const x = leaf([
        [1, 2, 3],
        [4, 5, 6],
        [7, 8, 9],
      ]);
      const source = leaf([
        [10, 20],
        [30, 40],
      ]);
      const y = scatter(
        x,
        tensor([
          [0n, 2n],
          [0n, 1n],
        ]),
        source,
        { dim: 0 },
      );
      expect(numbers(y)).toEqual([
        [30, 2, 3],
        [4, 40, 6],
        [7, 20, 9],
      ]);
      // The gradient of Σ y³ is 3 y², and the gradient of its sum is 6 y. The gradient of each element of y goes to the
      // tensor that the element was copied from: x or source.
      const [ofX, ofSource] = grad([sum(mul(y, mul(y, y)))], [x, source], { createGraph: true });
      expect(numbers(ofX)).toEqual([
        [0, 12, 27],
        [48, 0, 108],
        [147, 0, 243],
      ]);
      expect(numbers(ofSource)).toEqual([
        [0, 1200],
        [2700, 4800],
      ]);
      const [secondX, secondSource] = grad([sum(ofX), sum(ofSource)] as Tensor[], [x, source]);
      expect(numbers(secondX)).toEqual([
        [0, 12, 18],
        [24, 0, 36],
        [42, 0, 54],
      ]);
      expect(numbers(secondSource)).toEqual([
        [0, 120],
        [180, 240],
      ]);
    }));

  test("10,000 indices of 3 elements are added", () =>
    on(backend, () => {
      const index = BigInt64Array.from({ length: 10_000 }, (_, at) => BigInt((at * 7) % 3));
      const source = Float32Array.from(index, (_, at) => at);
      const last = (own: bigint) => index.lastIndexOf(own);
      expect(numbers(scatter(tensor([0, 0, 0]), tensor(index), tensor(source), { dim: 0 }))).toEqual(
        [0n, 1n, 2n].map(last),
      );
    }));

  test("one index that is expanded along the axis selects all elements of the source", () =>
    on(backend, () => {
      const index = expand(tensor([1n]), [4]);
      expect(numbers(scatterAdd(tensor([1, 2, 3]), index, tensor([10, 20, 30, 40]), { dim: 0 }))).toEqual([1, 102, 3]);
      expect(numbers(indexAdd(tensor([1, 2, 3]), index, tensor([10, 20, 30, 40]), { dim: 0 }))).toEqual([1, 102, 3]);
      expect(numbers(scatter(tensor([1, 2, 3]), index, tensor([10, 20, 30, 40]), { dim: 0 }))).toEqual([1, 40, 3]);
      const far = () => scatterAdd(tensor([1, 2, 3]), expand(tensor([3n]), [4]), tensor([1, 1, 1, 1]), { dim: 0 });
      expect(() => numbers(far())).toThrow("expected indices of 0 to 2, got 3 at [0]");
    }));

  test("a number for all elements, NaN and -0, and integers are scattered", () =>
    on(backend, () => {
      const x = tensor([1, 2, 3]);
      expect(numbers(scatter(x, tensor([2n, 0n]), 7, { dim: 0 }))).toEqual([7, 2, 7]);
      expect(numbers(scatter(x, tensor([2n, 0n]), tensor([Number.NaN, -0]), { dim: -1 }))).toEqual([-0, 2, Number.NaN]);
      expect(numbers(scatter(tensor([1n, 2n]), tensor([1n]), tensor([2n ** 62n]), { dim: 0 }))).toEqual([
        1n,
        2n ** 62n,
      ]);
      expect(scatter(tensor(1), tensor(0n), 5, { dim: 0 }).item()).toBe(5);
    }));

  test.each(["uint8", "int8", "uint32", "int32", "int64"] as const)("indices may be %s", (dtype) =>
    on(backend, () => {
      const index = tensor([2, 0], { dtype }) as Tensor<IndexDType>;
      const [x, source] = [tensor([1, 2, 3]), tensor([10, 20])];
      const table = tensor([
        [1, 2, 3],
        [4, 5, 6],
        [7, 8, 9],
      ]);
      expect(numbers(gather(x, index, { dim: 0 }))).toEqual([3, 1]);
      expect(numbers(indexSelect(x, index, { dim: 0 }))).toEqual([3, 1]);
      expect(numbers(takeAlongDim(x, index))).toEqual([3, 1]);
      expect(numbers(scatter(x, index, source, { dim: 0 }))).toEqual([20, 2, 10]);
      expect(numbers(scatterAdd(x, index, source, { dim: 0 }))).toEqual([21, 2, 13]);
      expect(numbers(indexAdd(x, index, source, { dim: 0 }))).toEqual([21, 2, 13]);
      expect(numbers(oneHot(index))).toEqual([
        [0n, 0n, 1n],
        [1n, 0n, 0n],
      ]);
      expect(numbers(embedding(index, table))).toEqual([
        [7, 8, 9],
        [1, 2, 3],
      ]);
      const logits = tensor([
        [0, 0, 0],
        [0, 0, 0],
      ]);
      expect(crossEntropy(logits, index).item()).toBeCloseTo(Math.log(3), 6);
    }),
  );
});
