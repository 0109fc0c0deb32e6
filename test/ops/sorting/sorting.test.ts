import { describe, expect, test } from "bun:test";
import { backendNames } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { argsort, sort, topk } from "../../../src/ops/sorting/sort.ts";
import { dtypes as all, isFloat } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { repeats, usually } from "../../support/repeats.ts";
import { placesOf, resultOf, valueAt } from "../coordinates.ts";
import { testTable } from "../run.ts";
import type { Block, Layout, OperandSpec } from "../samples.ts";
import type { Expected, OperationRow, Sample } from "../table.ts";

const floats = all.filter(isFloat);
const layouts: readonly Layout[] = ["contiguous", "offset", "transposed", "strided", "reversed", "expanded"];

interface Options {
  readonly dim: number;
  readonly descending: boolean;
  /** The number of elements per slice along the axis; all by default. */
  readonly k?: number;
}

/** The order of indices along an axis by definition: insertion into the sorted part, after all equals. */
function orderOf(slice: readonly number[], descending: boolean): number[] {
  const above = (a: number, b: number) => (Number.isNaN(a) ? !Number.isNaN(b) : a > b);
  const isBehind = (a: number, b: number) => (descending ? above(b, a) : above(a, b));
  const order: number[] = [];
  for (const [index, value] of slice.entries()) {
    let at = order.length;
    while (at > 0 && isBehind(slice[order[at - 1]], value)) at--;
    order.splice(at, 0, index);
  }
  return order;
}

function sorted(x: Block, { dim, descending, k }: Options): [Expected, Expected] {
  if (x.shape.length === 0) return [x, { shape: [], values: [0], dtype: "int64" }];
  const axis = dim < 0 ? dim + x.shape.length : dim;
  const size = x.shape[axis];
  const orders = new Map(
    placesOf(x.shape.with(axis, 1)).map((place) => {
      const slice = Array.from({ length: size }, (_, index) => valueAt(x, place.with(axis, index)));
      return [String(place), orderOf(slice, descending)];
    }),
  );
  const shape = x.shape.with(axis, k ?? size);
  const indexAt = (place: readonly number[]) => orders.get(String(place.with(axis, 0)))![place[axis]];
  return [
    resultOf(shape, (place) => valueAt(x, place.with(axis, indexAt(place)))),
    { ...resultOf(shape, indexAt), dtype: "int64" },
  ];
}

const both = [false, true];
const repeated: OperandSpec["values"] = { integers: [0, 3] };
const strange: OperandSpec["values"] = {
  list: [2, Number.NaN, -Infinity, 0, Infinity, -0, Number.NaN, -1e-7, 1e-7, -3, 0, Infinity],
};

/** With equal elements finite differences are invalid: another one may come first. */
const tied = (shape: readonly number[], layout: Layout, options: Options): Sample<Options> => ({
  inputs: [{ shape, layout, values: repeated }],
  options,
  gradient: false,
});

const samples: Sample<Options>[] = both.flatMap((descending) => [
  ...layouts.flatMap((layout) =>
    [0, 1, -1].flatMap((dim) => [
      { inputs: [{ shape: [3, 7, 5], layout }], options: { dim, descending } },
      tied([3, 7, 5], layout, { dim, descending }),
    ]),
  ),
  { inputs: [{ shape: [4, 12], values: strange }], options: { dim: 1, descending }, dtypes: floats, gradient: false },
  ...layouts.map((layout) => ({
    inputs: [{ shape: [2, 1, 2, 1, 3, 1, 2, 4], layout }],
    options: { dim: 4, descending },
  })),
  tied([2, 1, 2, 1, 3, 1, 2, 4], "transposed", { dim: 7, descending }),
  { inputs: [{ shape: [] }], options: { dim: -1, descending } },
  { inputs: [{ shape: [1] }], options: { dim: 0, descending } },
  { inputs: [{ shape: [2, 0, 3] }], options: { dim: 1, descending } },
  { inputs: [{ shape: [0, 3] }], options: { dim: 1, descending } },
  tied([2, 1024], "contiguous", { dim: 1, descending }),
  tied([2, 1025], "strided", { dim: 1, descending }),
  {
    inputs: [{ shape: [2, repeats({ usual: 2051, all: 3001 })], layout: "transposed" }],
    options: { dim: 1, descending },
  },
]);

const outputs = ({ values, indices }: { values: Tensor; indices: Tensor }) => [values, indices];

const row = (
  name: string,
  compute: OperationRow<Options>["compute"],
  own: readonly Sample<Options>[],
): OperationRow<Options> => ({
  name,
  compute,
  dtypes: all,
  samples: own,
  oracle: ([x], options) => sorted(x, options),
  accuracy: { ulps: 0 },
  gradient: true,
});

testTable("sorting", [
  row("sort", ([x], options) => outputs(sort(x, options)), samples),
  {
    ...row("argsort", ([x], options) => argsort(x, options), samples.slice(0, 6)),
    oracle: ([x], options) => sorted(x, options)[1],
    gradient: false,
  },
  row(
    "topk",
    ([x], { dim, descending, k }) => outputs(topk(x, k!, { dim, largest: descending })),
    samples.flatMap((sample, index) => {
      const size = sample.inputs[0].shape.at(sample.options.dim)!;
      const sizes = [0, 1, 3, size].filter((k) => k <= size);
      // A usual run has one size in turn, so that each is combined with each axis, with and without ties, in varying
      // layouts.
      const turn = (index + Math.floor(index / 6)) % sizes.length;
      return usually(sizes, (_, at) => at === turn).map((k) => ({ ...sample, options: { ...sample.options, k } }));
    }),
  ),
]);

describe.each([...backendNames])("sorting on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));

  test("the bits of an element are kept: -0, and the payload of NaN", () => {
    const payload = new Float32Array(new Uint32Array([0x7fc12345, 0x80000000, 0, 0xffc54321]).buffer);
    const values = on(() => sort(tensor(payload)).values.dataSync());
    // JavaScript has only one NaN, so the reference backend can't keep a payload.
    const nans = backend === "reference" ? [0x7fc00000, 0x7fc00000] : [0x7fc12345, 0xffc54321];
    expect([...new Uint32Array(values.buffer)]).toEqual([0x80000000, 0, ...nans]);
  });

  test("integers beyond 2^53 are distinguished", () => {
    const x = on(() => tensor([2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n]));
    expect(on(() => argsort(x).toArray())).toEqual([1n, 3n, 0n, 2n]);
  });

  test("sort and topk of a long slice are right", () => {
    const count = 70_000;
    const x = Float32Array.from({ length: count }, (_, i) => Math.fround(Math.sin(i * 12.9898) * 43758.5453) % 1);
    const order = Array.from(x.keys()).sort((a, b) => x[a] - x[b]);
    const { indices } = on(() => sort(tensor(x)));
    expect(Array.from(indices.dataSync(), Number)).toEqual(order);
    const largest = on(() => topk(tensor(x), 5).values.toArray());
    expect(largest).toEqual(
      order
        .slice(-5)
        .reverse()
        .map((index) => x[index]),
    );
  });
});
