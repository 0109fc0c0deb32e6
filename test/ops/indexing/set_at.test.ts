/**
 * Compares `setAt` with a plain array that is written element by element. The elements are selected by `at` on the
 * row-major indices, whose results equal PyTorch's.
 */
import { describe, expect, test } from "bun:test";
import { enableGrad, isGradEnabled } from "../../../src/autograd/modes.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { ShapeError } from "../../../src/core/errors.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import {
  arange,
  at,
  full,
  gt,
  type Index,
  indexPut,
  maskedScatter,
  mul,
  permute,
  put,
  reshape,
  scatterReduce,
  setAt,
  tensor,
} from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { checkFindings, tested } from "../run.ts";
import { hash, Random } from "../samples.ts";

const shape = [2, 3, 4];
const whole = <D extends DType>(dtype: D): Tensor<D> => reshape(arange(24, { dtype }), shape) as Tensor<D>;
const mask = (): Tensor<"bool"> => gt(whole("int64"), 15n);

const rows: Readonly<Record<string, () => Index[]>> = {
  "a number": () => [1],
  bounds: () => [":", "1:", "::2"],
  dots: () => ["...", -1],
  "a new axis": () => [null, 0],
  nothing: () => [":", "1:1"],
  "a list": () => [[1, 0]],
  "a list of nothing": () => [tensor(new BigInt64Array(0))],
  "a list behind": () => [":", [2, 0]],
  "the same twice": () => [":", [2, 0, 2]],
  "two lists": () => [":", [0, 2, 0], [1, 3, 1]],
  "two lists apart": () => [[0, 1], ":", [1, 3]],
  "lists that are broadcast": () => [":", tensor([[0n], [2n]]), tensor([1n, 3n])],
  "a mask": () => [mask()],
  "a mask of rows": () => [tensor([false, true])],
  "bounds and a mask": () => ["1:", gt(reshape(arange(12, { dtype: "int64" }), [3, 4]), 5n)],
  "a mask of an axis between bounds": () => [":", tensor([true, false, true]), "::2"],
  "a list and bounds": () => [0, [1, 1], "1:3"],
};

/** Each position in turn, by the definition. */
function expected(index: readonly Index[], value: readonly number[], accumulate: boolean): number[] {
  const result = Array.from({ length: 24 }, (_, own) => own / 2);
  const places = Array.from(reshape(at(whole("int64"), ...index), [-1]).dataSync(), Number);
  for (const [own, place] of places.entries()) result[place] = accumulate ? result[place] + value[own] : value[own];
  return result;
}

describe.each(tested)("setAt() on %s replaces the elements that NumPy replaces", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));

  test.each(Object.entries(rows))("%s is replaced as in NumPy", (_title, index) => {
    if (backend === "metal") metalContext().configure("check", true);
    for (const accumulate of [false, true])
      on(() => {
        const x = mul(whole("float32"), 0.5) as Tensor;
        const wanted = at(x, ...index());
        const value = reshape(arange(wanted.size, { dtype: "float32" }), wanted.shape).add(100.25) as Tensor;
        const numbers = Array.from(reshape(value, [-1]).dataSync(), Number);
        const result = setAt(x, index(), value, { accumulate });
        expect(Array.from(reshape(result, [-1]).dataSync(), Number)).toEqual(expected(index(), numbers, accumulate));
        const filled = setAt(x, index(), -7, { accumulate });
        const same = numbers.map(() => -7);
        expect(Array.from(reshape(filled, [-1]).dataSync(), Number)).toEqual(expected(index(), same, accumulate));
        expect(x.at(0, 0, 1).item()).toBe(0.5); // x is unchanged
      });
    if (backend === "metal") checkFindings({ name: "setAt" });
  });

  test("a number, a value that is broadcast, and x of other strides are accepted", () => {
    on(() => {
      const x = permute(whole("int32"), [2, 1, 0]);
      expect(setAt(x, [0, 0], 7).at(0, 0).toArray()).toEqual([7, 7]);
      const result = setAt(x, [[3, 0]], tensor([[5], [6], [7]], { dtype: "int32" }));
      expect(result.at(3).toArray()).toEqual([[5, 5], [6, 6], [7, 7]]); // biome-ignore format: rows
      expect(result.at(1).toArray()).toEqual(x.at(1).toArray());
      expect(
        indexPut(x, [tensor([1n]), tensor([-1n])], 9)
          .at(1, 2)
          .toArray(),
      ).toEqual([9, 9]);
    });
  });
});

const wave = (own: readonly number[], step: number): Tensor => {
  const size = own.reduce((product, each) => product * each, 1);
  const values = Float64Array.from({ length: size }, (_, place) => Math.sin((place + 1) * step));
  return tensor(values, { shape: own, requiresGrad: true });
};

/** Functions of x and other values, cubed so that second gradients depend on both. */
const cubed = (x: Tensor): Tensor => mul(x, mul(x, x)) as Tensor;
const places = () => tensor([[0n, 1n, 0n], [1n, 1n, 0n]]); // biome-ignore format: rows
const functions: Readonly<Record<string, readonly [(x: Tensor, y: Tensor) => Tensor, readonly number[]]>> = {
  setAt: [(x, y) => cubed(setAt(x, [":", [0, 2, 0]], y)), [2, 3]],
  "setAt of a view": [(x, y) => cubed(setAt(x, [":", "1:"], y)), [2, 2]],
  "setAt, accumulated": [(x, y) => cubed(setAt(x, [":", [0, 2, 0]], y, { accumulate: true })), [2, 3]],
  put: [(x, y) => cubed(put(x, tensor([[5n, 0n, 5n]]), y)), [1, 3]],
  maskedScatter: [(x, y) => cubed(maskedScatter(x, gt(x, 0.5), y)), [7]],
  "setAt with a mask": [(x, y) => cubed(setAt(x, [gt(x.detach(), 0.5)], y)), []],
  ...Object.fromEntries(
    (["sum", "prod", "mean", "amax", "amin"] as const).map((reduce) => [
      `scatterReduce ${reduce}`,
      [(x: Tensor, y: Tensor) => cubed(scatterReduce(x, 0, places(), y, reduce)), [2, 3]] as const,
    ]),
  ),
};

test.each(Object.entries(functions))(
  "gradients and second gradients of %s equal finite differences",
  (_name, [compute, sizes]) => {
    for (const backend of ["cpu", "reference"] as const)
      withBackend(backend, () => {
        const [x, y] = [wave([2, 3], 0.7), wave(sizes, 1.3)];
        gradcheck((a, b) => compute(a, b), [x, y]);
        const first = (which: 0 | 1) => (a: Tensor, b: Tensor) => {
          const createGraph = isGradEnabled(); // finite differences need no graph
          const output = enableGrad(() => compute(a, b));
          return grad([output], [a, b], { gradOutputs: [full(output.shape, 0.75, { dtype: "float64" })], createGraph })[
            which
          ];
        };
        for (const which of [0, 1] as const) gradcheck((a, b) => first(which)(a, b), [x, y]);
      });
  },
);

test("a number written at a mask, between whole axes, equals a loop for drawn shapes", () => {
  const random = new Random(hash("setAt with a mask"));
  for (let round = 0; round < 60; round++) {
    const sizes = Array.from({ length: random.integer(1, 4) }, () => random.integer(0, 4));
    const before = random.integer(0, sizes.length - 1);
    const rank = random.integer(1, sizes.length - before);
    const [count, inner] = [elementCount(sizes), elementCount(sizes.slice(before + rank))];
    const masked = elementCount(sizes.slice(before, before + rank));
    const set = Uint8Array.from({ length: masked }, () => random.integer(0, 1));
    const expected = Float32Array.from({ length: count }, (_, at) => (set[Math.floor(at / inner) % masked] ? -7 : at));
    for (const backend of tested) {
      const written = withStrict(true, () =>
        withBackend(backend, () => {
          const chosen = tensor(set, { shape: sizes.slice(before, before + rank), dtype: "bool" });
          const whole = Array.from({ length: before }, () => (random.integer(0, 1) === 0 ? ":" : ({} as const)));
          return setAt(reshape(arange(count, { dtype: "float32" }), sizes), [...whole, chosen], -7);
        }),
      );
      expect(written.shape).toEqual(sizes);
      expect(written.dataSync()).toEqual(expected);
    }
  }
});

test.each(tested)("a mask whose shape differs from its axes throws a ShapeError, on %s", (backend) => {
  const wrong = tensor([true, false, true]);
  expect(() => withBackend(backend, () => setAt(whole("float32"), [wrong], 1))).toThrow(ShapeError);
  expect(() => withBackend(backend, () => setAt(whole("float32"), [":", ":", wrong], 1))).toThrow(ShapeError);
});
