/** In-place operations: what they write, and that autograd detects the change. */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { clone } from "../../../src/ops/copy/copy.ts";
import { add_, copy_, div_, fill_, mul_, sub_, zero_ } from "../../../src/ops/copy/inplace.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { add, mul } from "../../../src/ops/elementwise/arithmetic.ts";
import { backward } from "../../../src/ops/gradient/backward.ts";
import { flip } from "../../../src/ops/join/flip.ts";
import { transpose } from "../../../src/ops/view/permute.ts";
import { reshape } from "../../../src/ops/view/reshape.ts";
import { select } from "../../../src/ops/view/slice.ts";
import { Tensor } from "../../../src/tensor/tensor.ts";

/** Every second element, backwards: strides that no kernel supports directly. */
const everySecond = (x: Tensor): Tensor => new Tensor(x.storage, x.dtype, [3], [-2], 4);

describe.each(["metal", "cpu", "reference"] as const)("changes in place on %s", (backend) => {
  const on = (body: () => void) => () => withStrict(true, () => withBackend(backend, body));

  test(
    "arithmetic in place equals the function",
    on(() => {
      const x = tensor([1, 2, 3]);
      expect(add_(x, tensor([10, 20, 30]))).toBe(x);
      expect(x.toArray()).toEqual([11, 22, 33]);
      expect(sub_(x, 1).toArray()).toEqual([10, 21, 32]);
      expect(mul_(x, x).toArray()).toEqual([100, 441, 1024]);
      expect(div_(x, 2).toArray()).toEqual([50, 220.5, 512]);
      expect(zero_(x).toArray()).toEqual([0, 0, 0]);
      expect(fill_(x, 7).toArray()).toEqual([7, 7, 7]);
    }),
  );

  test(
    "views change with their base",
    on(() => {
      const x = tensor([0, 1, 2, 3, 4, 5], { dtype: "int32" });
      copy_(everySecond(x), tensor([10.9, -20.9, 3e9]));
      expect(x.toArray()).toEqual([2147483647, 1, -20, 3, 10, 5]);
      add_(everySecond(x), 1);
      expect(x.toArray()).toEqual([-2147483648, 1, -19, 3, 11, 5]);
    }),
  );

  test(
    "an overlapping source is read before it is written",
    on(() => {
      const x = tensor([1, 2, 3, 4]);
      const [head, tail] = [0, 1].map((start) => new Tensor(x.storage, x.dtype, [3], [1], start)) as [Tensor, Tensor];
      expect(copy_(tail, head) && x.toArray()).toEqual([1, 1, 2, 3]);
    }),
  );

  test(
    "operands may be the tensor itself, its transpose, or a row of it",
    on(() => {
      const square = () => tensor(Array.from({ length: 4225 }, (_, index) => (index * 31) % 97));
      const [before, x] = [square().toArray() as number[], reshape(square(), [65, 65])];
      const at = (row: number, column: number) => before[row * 65 + column];
      const want = (formula: (row: number, column: number) => number) =>
        before.map((_, index) => formula(Math.floor(index / 65), index % 65));
      const changed = (change: (x: Tensor) => Tensor) => reshape(change(clone(x)), [4225]).toArray();
      expect(changed((y) => add_(y, y))).toEqual(want((row, column) => 2 * at(row, column)));
      expect(changed((y) => add_(y, transpose(y, 0, 1)))).toEqual(
        want((row, column) => at(row, column) + at(column, row)),
      );
      expect(changed((y) => sub_(y, select(y, 0, 3)))).toEqual(want((row, column) => at(row, column) - at(3, column)));
      expect(changed((y) => copy_(y, transpose(y, 0, 1)))).toEqual(want((row, column) => at(column, row)));
      expect(changed((y) => copy_(y, flip(y, 0)))).toEqual(want((row, column) => at(64 - row, column)));
      expect(changed((y) => mul_(transpose(y, 0, 1), y))).toEqual(
        want((row, column) => at(row, column) * at(column, row)),
      );
    }),
  );

  test(
    "operands of other dtypes: the result is converted to that of x",
    on(() => {
      expect(add_(tensor([1, 2], { dtype: "float16" }), tensor([0.5, 1])).toArray()).toEqual([1.5, 3]);
      expect(mul_(tensor([100], { dtype: "int8" }), tensor([3], { dtype: "int32" })).toArray()).toEqual([44]);
      expect(add_(tensor([1, 2]), tensor([true, false])).toArray()).toEqual([2, 2]);
    }),
  );

  test(
    "plain numbers stay unchanged",
    on(() => {
      const x = tensor([1, 2]);
      const y = copy_(tensor([0, 0]), 3);
      fill_(y, 4);
      expect(add(x, 3).toArray()).toEqual([4, 5]);
    }),
  );
});

test("each change in place is counted, regardless of its operands", () => {
  const changes: readonly ((x: Tensor) => Tensor)[] = [
    (x) => add_(x, 1),
    (x) => sub_(x, x),
    (x) => mul_(x, 2),
    (x) => div_(x, 2),
    (x) => copy_(x, 1),
    (x) => fill_(x, 1),
    (x) => zero_(x),
    (x) => fill_(select(x, 0, 0), 1), // fills a view of x
  ];
  for (const change of changes) {
    const saved = tensor([3, 4]);
    const y = mul(tensor([1, 2], { requiresGrad: true }), saved);
    change(saved);
    expect(() => backward(y, tensor([1, 1]))).toThrow(
      /^\[backward\] a tensor float32\[2\] that mul needs for its gradient was changed in place \(it is at version/,
    );
  }
});

test("backward reports that a saved tensor was changed", () => {
  const x = tensor([1, 2], { requiresGrad: true });
  const factor = tensor([3, 4]);
  const y = mul(x, factor);
  add_(factor, 1);
  expect(() => backward(y, tensor([1, 1]))).toThrow("was changed in place (it is at version");
});
