/** Rotary embeddings with the caller's cosines and sines: results, gradients of both orders, and invalid tables. */
import { describe, expect, test } from "bun:test";
import { enableGrad } from "../../../src/autograd/modes.ts";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { toDType } from "../../../src/ops/copy/cast.ts";
import { contiguous } from "../../../src/ops/copy/copy.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { mul } from "../../../src/ops/elementwise/arithmetic.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import { type RopeOptions, rope } from "../../../src/ops/position/rope.ts";
import { randn } from "../../../src/ops/random/randn.ts";
import { sum } from "../../../src/ops/reduction/sum.ts";
import { transpose } from "../../../src/ops/view/permute.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";

const on = <Result>(backend: BackendName, body: () => Result): Result =>
  withStrict(true, () => withBackend(backend, body));

const drawn = (shape: readonly number[], seed: number, dtype: "float32" | "float64" = "float32"): Tensor =>
  randn(shape, { dtype, generator: new Generator(seed) });
const numbers = (x: Tensor): number[] => (x.toArray() as number[]).flat(4) as number[];

/** The definition in float64; a table of one batch applies to all. */
function turned(x: Tensor, cos: Tensor, sin: Tensor, interleaved: boolean): number[] {
  const [values, c, s] = [x, cos, sin].map((own) => numbers(own)) as [number[], number[], number[]];
  const [seq, size] = x.shape.slice(-2) as [number, number];
  const pairs = cos.shape.at(-1)!;
  const rowsOfBatch = values.length / size / x.shape[0];
  const result = [...values];
  for (let row = 0; row < values.length / size; row++) {
    const batch = cos.rank === 3 ? Math.floor(row / rowsOfBatch) : 0;
    for (let pair = 0; pair < pairs; pair++) {
      const first = row * size + (interleaved ? 2 * pair : pair);
      const second = first + (interleaved ? 1 : pairs);
      const at = (batch * seq + (row % seq)) * pairs + pair;
      result[first] = values[first] * c[at] - values[second] * s[at];
      result[second] = values[first] * s[at] + values[second] * c[at];
    }
  }
  return result;
}

const calls = [
  { shape: [5, 6], table: [5, 3] },
  { shape: [2, 5, 6], table: [5, 3] },
  { shape: [2, 5, 6], table: [2, 5, 3] },
  { shape: [2, 3, 5, 6], table: [2, 5, 3] },
  { shape: [2, 3, 5, 10], table: [5, 2], dim: 4 },
  { shape: [0, 5, 4], table: [5, 2] },
] as const;

describe.each(tested)("rope with tables on %s", (backend) => {
  for (const { shape, table, ...options } of calls)
    test.each([false, true])(`rope of [${shape}] by [${table}] equals the formula, interleaved: %p`, (interleaved) =>
      on(backend, () => {
        const [x, cos, sin] = [drawn(shape, 1), drawn(table, 2), drawn(table, 3)];
        const wanted = turned(x, cos, sin, interleaved);
        const got = numbers(rope(x, { cos, sin, interleaved, ...options }));
        for (const [at, value] of got.entries()) expect(Math.abs(value - wanted[at])).toBeLessThan(2 ** -20);
        const view = transpose(contiguous(transpose(x, -1, -2)), -1, -2);
        expect(numbers(rope(view, { cos, sin, interleaved, ...options }))).toEqual(got);
      }),
    );

  test("16-bit floats are rounded once", () =>
    on(backend, () => {
      const [cos, sin] = [drawn([5, 3], 2), drawn([5, 3], 3)];
      const x = toDType(drawn([5, 6], 1), "float16");
      const wanted = tensor(turned(x, cos, sin, false), { shape: [5, 6], dtype: "float16" });
      const got = rope(x, { cos, sin });
      expect(got.dtype).toBe("float16");
      expect(numbers(got).filter((value, at) => value !== numbers(wanted)[at]).length).toBeLessThanOrEqual(1);
    }));

  test("gradients of x and of the tables equal finite differences", () =>
    on(backend, () => {
      const [x, cos, sin] = [drawn([2, 3, 4], 1), drawn([3, 2], 2), drawn([3, 2], 3)];
      for (const own of [x, cos, sin]) own.requiresGrad = true;
      const cotangent = drawn([2, 3, 4], 4);
      const [ofX, ofCos] = grad([sum(mul(rope(x, { cos, sin }), cotangent) as Tensor)], [x, cos]);
      const back = turned(cotangent, cos, mul(sin, -1) as Tensor, false);
      for (const [at, value] of numbers(ofX).entries()) expect(Math.abs(value - back[at])).toBeLessThan(2 ** -20);
      const [g, v] = [numbers(cotangent), numbers(x)];
      const product = (row: number, at: number) => g[row * 4 + at] * v[row * 4 + at];
      for (const [at, value] of numbers(ofCos).entries()) {
        const [row, pair] = [Math.floor(at / 2), at % 2];
        const rows = [row, row + 3].map((own) => product(own, pair) + product(own, pair + 2));
        expect(Math.abs(value - rows[0] - rows[1])).toBeLessThan(2 ** -19);
      }
    }));
});

test.each(["cpu", "reference"] as const)("rope with tables has gradients of gradients on %s", (backend) =>
  on(backend, () => {
    const operands = [drawn([2, 3, 4], 1, "float64"), drawn([3, 2], 2, "float64"), drawn([3, 2], 3, "float64")];
    for (const own of operands) own.requiresGrad = true;
    gradcheck((...own: Tensor[]) => {
      for (const operand of own) operand.requiresGrad = true; // also in float64, for finite differences
      const [x, cos, sin] = own as [Tensor, Tensor, Tensor];
      return enableGrad(() => {
        const y = rope(mul(x, x) as Tensor, { cos, sin });
        return grad([sum(mul(y, y) as Tensor)], own, { createGraph: true }) as Tensor[];
      });
    }, operands);
  }),
);

test("the error for an invalid table says what is wrong", () => {
  const x = drawn([2, 5, 6], 1);
  const [cos, sin] = [drawn([5, 3], 2), drawn([5, 3], 3)];
  const message = (options: RopeOptions): string => {
    try {
      rope(x, options);
      return "";
    } catch (error) {
      return `${(error as Error).name}: ${(error as Error).message}`;
    }
  };
  expect(message({ cos })).toMatch(/ArgumentError: \[rope\] expected cos and sin together, got cos alone/);
  expect(message({ cos, sin, offset: 3 })).toMatch(/ArgumentError: \[rope\] expected no offset with cos and sin/);
  expect(message({ cos: drawn([5, 6], 1), sin })).toMatch(/ShapeError: .*\[5, 3\] or \[2, 5, 3\].*got float32\[5, 6\]/);
  expect(message({ cos, sin: tensor([1n]) })).toMatch(
    /DTypeError: \[rope\] expected sin to have a float dtype, got int64/,
  );
});
