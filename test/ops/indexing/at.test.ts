/** `at` compared with PyTorch 2.15 for the same indices of arange(24).reshape(2, 3, 4). */
import { describe, expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { DTypeError, ShapeError } from "../../../src/core/errors.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import { arange, eq, remainder, reshape, select, tensor } from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { checkFindings, tested } from "../run.ts";

const whole = (): Tensor => reshape(arange(24, { dtype: "int64" }), [2, 3, 4]);
const third = (): Tensor<"bool"> => eq(remainder(select(whole(), 0, 0), 3n) as Tensor, 0n);

type Row = readonly [title: string, shape: readonly number[], values: readonly number[], call: (x: Tensor) => Tensor];

const rows: readonly Row[] = [
  ["x.at(1)", [3, 4], [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23], (x) => x.at(1)],
  ["x.at(-1, 0)", [4], [12, 13, 14, 15], (x) => x.at(-1, 0)],
  ["x.at(1, 2, 3)", [], [23], (x) => x.at(1, 2, 3)],
  ['x.at(":", "1:")', [2, 2, 4], [4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23], (x) => x.at(":", "1:")],
  ['x.at("...", -1)', [2, 3], [3, 7, 11, 15, 19, 23], (x) => x.at("...", -1)],
  ["x.at(null, 0)", [1, 3, 4], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], (x) => x.at(null, 0)],
  ['x.at(":", "::2", "1:3")', [2, 2, 2], [1, 2, 9, 10, 13, 14, 21, 22], (x) => x.at(":", "::2", "1:3")],
  ['x.at(0, "...", null)', [3, 4, 1], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], (x) => x.at(0, "...", null)],
  [
    'x.at(":", { start: -2 }, { end: -1, step: 2 })',
    [2, 2, 2],
    [4, 6, 8, 10, 16, 18, 20, 22],
    (x) => x.at(":", { start: -2 }, { end: -1, step: 2 }),
  ],
  [
    "x.at([1, 0])",
    [2, 3, 4],
    [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    (x) => x.at([1, 0]),
  ],
  [
    'x.at(":", [2, 0])',
    [2, 2, 4],
    [8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15],
    (x) => x.at(":", [2, 0]),
  ],
  ["x.at([0, 1], [1, 2])", [2, 4], [4, 5, 6, 7, 20, 21, 22, 23], (x) => x.at([0, 1], [1, 2])],
  ['x.at(":", [0, 2], [1, 3])', [2, 2], [1, 11, 13, 23], (x) => x.at(":", [0, 2], [1, 3])],
  ['x.at([0, 1], ":", [1, 3])', [2, 3], [1, 5, 9, 15, 19, 23], (x) => x.at([0, 1], ":", [1, 3])],
  ['x.at("...", [-1])', [2, 3, 1], [3, 7, 11, 15, 19, 23], (x) => x.at("...", [-1])],
  [
    "x.at(tensor([[0n, 1n], [1n, 0n]]))",
    [2, 2, 3, 4],
    [
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 12, 13, 14, 15, 16, 17, 18,
      19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
    ],
    (x) =>
      x.at(
        tensor([
          [0n, 1n],
          [1n, 0n],
        ]),
      ),
  ],
  [
    'x.at(":", tensor([[0n], [2n]]), tensor([1n, 3n]))',
    [2, 2, 2],
    [1, 3, 9, 11, 13, 15, 21, 23],
    (x) => x.at(":", tensor([[0n], [2n]]), tensor([1n, 3n])),
  ],
  ["x.at(x.gt(20))", [3], [21, 22, 23], (x) => x.at(x.gt(20))],
  ['x.at(":", third())', [2, 4], [0, 3, 6, 9, 12, 15, 18, 21], (x) => x.at(":", third())],
  ["x.at(1, third())", [4], [12, 15, 18, 21], (x) => x.at(1, third())],
  ["x.at(0, [1, 1], null)", [2, 1, 4], [4, 5, 6, 7, 4, 5, 6, 7], (x) => x.at(0, [1, 1], null)],
  ["x.at([])", [0, 3, 4], [], (x) => x.at([])],
];

for (const backend of tested)
  describe(`at() on ${backend} selects the elements that NumPy selects`, () => {
    test.each(rows)("%s selects the elements that NumPy selects", (_title, shape, values, call) => {
      if (backend === "metal") metalContext().configure("check", true);
      const result = withStrict(true, () => withBackend(backend, () => call(whole())));
      expect(result.describe()).toBe(`int64[${shape.join(", ")}]`);
      expect(Array.from(result.reshape([result.size]).dataSync(), Number)).toEqual([...values]);
      if (backend === "metal") checkFindings({ name: "at" });
    });

    test("an index out of range is an error when its result is read", () => {
      const read = (call: (x: Tensor) => Tensor) => () => withBackend(backend, () => call(whole()).dataSync());
      expect(read((x) => x.at([0, 2]))).toThrow(ShapeError);
      expect(read((x) => x.at([0, -3]))).toThrow(ShapeError);
      // 1 · 3 + 3 would be the index of another element
      expect(read((x) => x.at([0], [3]))).toThrow(ShapeError);
    });
  });

test("on cpu the error for an index out of range names the first element with one", () => {
  const read =
    (...indices: Parameters<Tensor["at"]>) =>
    () =>
      withBackend("cpu", () => whole().at(...indices));
  expect(read([0, 1, -3], [0, 0, 1])).toThrow(/indices of -2 to 1, got -3 at \[2\]/);
  expect(read([0, 1], tensor([[2n], [5n], [1n]], { dtype: "int32" }))).toThrow(/indices of -3 to 2, got 5 at \[1, 0\]/);
});

test("the error for many indices of several kinds lists them", () => {
  const x = reshape(arange(35, { dtype: "int32" }), [5, 7]);
  const count = 40_000; // more elements than one thread's share
  const rows = Array.from({ length: count }, (_, at) => ((at * 13) % 10) - 5);
  const columns = Array.from({ length: count }, (_, at) => (at * 11) % 7);
  const expected = rows.map((row, at) => ((row + 5) % 5) * 7 + columns[at]);
  for (const dtype of ["int64", "int32", "int8"] as const)
    withBackend("cpu", () => {
      const [i, j] = [rows, columns].map((own) => tensor(own, { dtype }));
      expect(Array.from(x.at(i, j).dataSync())).toEqual(expected);
      const backwards = [...expected].reverse();
      expect(Array.from(x.at(i.flip([0]), j.flip([0])).dataSync())).toEqual(backwards);
    });
});

test("at() returns a view for numbers and bounds, and a copy for tensors", () => {
  const x = whole();
  expect(x.at(0, "1:").storage).toBe(x.storage);
  expect(x.at([0]).storage).not.toBe(x.storage);
});

test("gradients of at match finite differences", () => {
  const x = reshape(arange(24, { dtype: "float64" }), [2, 3, 4]);
  x.requiresGrad = true;
  const calls: readonly ((own: Tensor) => Tensor)[] = [
    (own) => own.at(1, "::2"),
    (own) => own.at(":", [0, 2, 0], [1, 3, 1]), // the same element twice
    (own) => own.at(":", third()),
  ];
  for (const call of calls) gradcheck((own) => call(own.mul(own)), [x]);
});

describe("invalid indices are rejected", () => {
  const refusals: readonly (readonly [says: string, call: (x: Tensor) => unknown, kind?: typeof ShapeError])[] = [
    ["expected at most 3 indices for int64[2, 3, 4], got 4", (x) => x.at(0, 0, 0, 0), ShapeError],
    ["expected indices of -2 to 1", (x) => x.at(2), ShapeError],
    ['expected at most one "..."', (x) => x.at("...", "...")],
    ['expected indices to be bounds such as "1:", ":-1" or "::2", got "1-2"', (x) => x.at("1-2")],
    ["expected a step of at least 1, got -1", (x) => x.at("::-1")],
    ["a mask in indices to have the shape [2, 3] of its axes, got bool[3, 4]", (x) => x.at(third()), ShapeError],
    ["expected indices to be integers or a mask, got float32[1]", (x) => x.at(tensor([0.5])), DTypeError as never],
    ["expected an index to be a whole number, got 0.5", (x) => x.at([0.5])],
    ["expected indices to be numbers, bounds", (x) => x.at(true as never)],
  ];
  test.each(refusals)("the index %s is rejected", (says, call, kind = Error as never) => {
    expect(() => call(whole())).toThrow(says);
    expect(() => call(whole())).toThrow(kind);
  });
});
