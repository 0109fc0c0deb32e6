/** Sums of products, and products over chosen axes, on every backend. */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import * as library from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { gradientOf, leaf } from "../activation/rows.ts";
import { resultOf, valueAt } from "../coordinates.ts";
import { testTable } from "../run.ts";
import type { Block, Layout } from "../samples.ts";
import type { Expected, OperationRow, Round, Sample } from "../table.ts";
import { productDTypes, wrapped } from "./products.ts";

type Shape = readonly number[];

/** One call of an operation on operands of some shapes: out[position] = Σ terms, plus beta times the input there. */
interface Call {
  readonly shapes: readonly Shape[];
  readonly result: Shape;
  readonly compute: (...operands: Tensor[]) => Tensor;
  /** The factors of each term, as positions in the operands that are multiplied. */
  readonly terms: (place: readonly number[]) => readonly (readonly (readonly [operand: number, place: Shape])[])[];
  /** The position in `input`, the first operand; absent without one. */
  readonly added?: (place: readonly number[]) => Shape;
}

const BETA = 2;
const ALPHA = 3;
const scale = { beta: BETA, alpha: ALPHA };
const range = (count: number): number[] => Array.from({ length: count }, (_, at) => at);

const calls: Readonly<Record<string, Call>> = {
  addmv: {
    shapes: [[3], [3, 5], [5]],
    result: [3],
    compute: (x, a, b) => library.addmv(x, a, b, scale),
    terms: ([i]) => range(5).map((k) => [[1, [i, k]] as const, [2, [k]] as const]),
    added: ([i]) => [i],
  },
  addr: {
    shapes: [[1, 4], [3], [4]],
    result: [3, 4],
    compute: (x, a, b) => library.addr(x, a, b, scale),
    terms: ([i, j]) => [[[1, [i]] as const, [2, [j]] as const]],
    added: ([, j]) => [0, j],
  },
  addbmm: {
    shapes: [[4], [2, 3, 5], [2, 5, 4]],
    result: [3, 4],
    compute: (x, a, b) => library.addbmm(x, a, b, scale),
    terms: ([i, j]) => range(2).flatMap((n) => range(5).map((k) => [[1, [n, i, k]] as const, [2, [n, k, j]] as const])),
    added: ([, j]) => [j],
  },
  baddbmm: {
    shapes: [
      [2, 1, 4],
      [2, 3, 5],
      [2, 5, 4],
    ],
    result: [2, 3, 4],
    compute: (x, a, b) => library.baddbmm(x, a, b, scale),
    terms: ([n, i, j]) => range(5).map((k) => [[1, [n, i, k]] as const, [2, [n, k, j]] as const]),
    added: ([n, , j]) => [n, 0, j],
  },
  inner: {
    shapes: [[2, 3, 5], [4, 5]], // biome-ignore format: shapes
    result: [2, 3, 4],
    compute: (a, b) => library.inner(a, b),
    terms: ([i, j, l]) => range(5).map((k) => [[0, [i, j, k]] as const, [1, [l, k]] as const]),
  },
  tensordot: {
    shapes: [[2, 3, 4], [4, 5, 2]], // biome-ignore format: shapes
    result: [3, 5],
    compute: (a, b) => library.tensordot(a, b, [[0, 2], [-1, 0]]), // biome-ignore format: axes
    terms: ([i, j]) => range(2).flatMap((n) => range(4).map((k) => [[0, [n, i, k]] as const, [1, [k, j, n]] as const])),
  },
  "tensordot without axes": {
    shapes: [[2], [3]],
    result: [2, 3],
    compute: (a, b) => library.tensordot(a, b, 0),
    terms: ([i, j]) => [[[0, [i]] as const, [1, [j]] as const]],
  },
  bilinear: {
    shapes: [[2, 3], [2, 4], [5, 3, 4], [5]], // biome-ignore format: shapes
    result: [2, 5],
    compute: (a, b, weight, bias) => library.bilinear(a, b, weight, bias),
    terms: ([n, o]) => [
      ...range(3).flatMap((i) =>
        range(4).map((j) => [[0, [n, i]] as const, [1, [n, j]] as const, [2, [o, i, j]] as const]),
      ),
      [[3, [o]] as const],
    ],
  },
};

const layouts: readonly Layout[] = ["contiguous", "transposed", "strided", "offset", "reversed"];
const samplesOf = (call: Call): Sample<Call>[] =>
  layouts.map((layout, at) => ({
    name: layout,
    inputs: call.shapes.map((shape, operand) => ({ shape, layout: layouts[(at + operand) % layouts.length] })),
    options: call,
  }));

function oracle(inputs: readonly Block[], call: Call, round: Round): Expected {
  const { dtype } = inputs[0];
  return resultOf(call.result, (place) => {
    const factor = call.added ? ALPHA : 1;
    const start = call.added ? round(BETA * valueAt(inputs[0], call.added(place))) : 0;
    const sum = call
      .terms(place)
      .map((factors) => factors.reduce((product, [own, at]) => round(product * valueAt(inputs[own], at)), factor))
      .reduce((total, term) => round(total + term), start);
    return wrapped(dtype, sum);
  });
}

testTable(
  "added products",
  Object.entries(calls).map(
    ([name, call]): OperationRow<Call> => ({
      name,
      compute: (inputs) => call.compute(...inputs),
      dtypes: productDTypes,
      samples: samplesOf(call),
      oracle,
      accuracy: { flash: true },
      sumLength: () => 4 * 64,
      gradient: true,
    }),
  ),
);

describe.each(["cpu", "reference"] as const)("gradients of gradients on %s", (backend) => {
  test.each(Object.entries(calls))("%s has gradients of gradients", (_name, { shapes, compute, result }) =>
    withBackend(backend, () => {
      const leaves = shapes.map((shape, at) => leaf(shape, at + 1));
      const first = (...all: Tensor[]) => gradientOf(compute)(...(all as [Tensor, ...Tensor[]]));
      expect(gradcheck(first, [leaf(result, 9), ...leaves])).toBe(true);
    }),
  );
});

test("an input that is multiplied by 0 is ignored", () => {
  const nan = library.tensor([Number.NaN]);
  const [matrix, vector, batch] = [library.ones([2, 3]), library.ones([3]), library.ones([1, 3, 3])];
  const results = [
    library.addmv(nan, matrix, vector, { beta: 0 }),
    library.addr(nan, vector, vector, { beta: 0 }),
    library.addbmm(nan, batch, batch, { beta: 0 }),
    library.baddbmm(nan, batch, batch, { beta: 0 }),
  ];
  expect(results.map((own) => library.sum(own).item())).toEqual([6, 9, 27, 27]);
});
