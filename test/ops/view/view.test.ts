import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { codepaths, resetCodepaths } from "../../../src/backend/codepaths.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { diagonal } from "../../../src/ops/view/diagonal.ts";
import { expand } from "../../../src/ops/view/expand.ts";
import { flatten, unflatten } from "../../../src/ops/view/flatten.ts";
import { movedim, permute, transpose } from "../../../src/ops/view/permute.ts";
import { reshape, viewStrides } from "../../../src/ops/view/reshape.ts";
import { narrow, select, slice } from "../../../src/ops/view/slice.ts";
import { chunk, split, unbind } from "../../../src/ops/view/split.ts";
import { squeeze, unsqueeze } from "../../../src/ops/view/squeeze.ts";
import { dtypes } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { type Coordinates, numberOf, placesOf, resultOf, valueAt } from "../coordinates.ts";
import { testTable } from "../run.ts";
import type { Block, Layout } from "../samples.ts";
import type { Expected, OperationRow } from "../table.ts";

const layouts: readonly Layout[] = ["contiguous", "offset", "transposed", "strided", "reversed", "expanded"];

/** A call of a view, with the source of each position of the result. */
interface Case {
  readonly name: string;
  readonly shape: readonly number[];
  readonly call: (x: Tensor) => Tensor | Tensor[];
  readonly oracle: (x: Block) => Expected | Expected[];
}

/** A view that reads the input at another position. */
const moved = (
  name: string,
  shape: readonly number[],
  call: (x: Tensor) => Tensor,
  result: readonly number[],
  from: (place: Coordinates) => Coordinates,
): Case => ({ name, shape, call, oracle: (x) => resultOf(result, (place) => valueAt(x, from(place))) });

/** A view that keeps the row-major order. */
const reshaped = (name: string, shape: readonly number[], call: (x: Tensor) => Tensor, result: readonly number[]) => ({
  name,
  shape,
  call,
  oracle: ({ values }: Block): Expected => ({ shape: result, values }),
});

const shape = [3, 4, 5];
/** A shape of the highest rank. */
const highest = [2, 1, 2, 1, 2, 1, 2, 3];
const part = (start: number, length: number) => (x: Block) =>
  resultOf([3, length, 5], ([i, j, k]) => valueAt(x, [i, j + start, k]));

const cases: readonly Case[] = [
  moved(
    "permute",
    shape,
    (x) => permute(x, [2, 0, -2]),
    [5, 3, 4],
    ([k, i, j]) => [i, j, k],
  ),
  moved(
    "permute of nothing",
    [],
    (x) => permute(x, []),
    [],
    () => [],
  ),
  moved(
    "permute of rank 8",
    highest,
    (x) => permute(x, [7, 6, 5, 4, 3, 2, 1, 0]),
    highest.toReversed(),
    (place) => place.toReversed(),
  ),
  moved(
    "transpose of rank 8",
    highest,
    (x) => transpose(x, 2, 7),
    highest.with(2, 3).with(7, 2),
    (place) => place.with(2, place[7]).with(7, place[2]),
  ),
  reshaped("flatten of rank 8", highest, (x) => flatten(x, { startDim: 2 }), [2, 1, 24]),
  reshaped("squeeze of rank 8", highest, (x) => squeeze(x), [2, 2, 2, 2, 3]),
  reshaped("unsqueeze to rank 8", [2, 3, 1, 2, 2, 1, 2], (x) => unsqueeze(x, 3), [2, 3, 1, 1, 2, 2, 1, 2]),
  moved(
    "expand to rank 8",
    [2, 1, 3],
    (x) => expand(x, [1, 2, 1, 2, 1, 2, 2, 3]),
    [1, 2, 1, 2, 1, 2, 2, 3],
    (place) => [place[5], 0, place[7]],
  ),
  moved(
    "slice of rank 8",
    highest,
    (x) => slice(x, { dim: -1, step: 2 }),
    highest.with(7, 2),
    (place) => place.with(7, 2 * place[7]),
  ),
  moved(
    "transpose",
    shape,
    (x) => transpose(x, 0, -1),
    [5, 4, 3],
    ([k, j, i]) => [i, j, k],
  ),
  moved(
    "transpose of an empty tensor",
    [2, 0],
    (x) => transpose(x, 0, 1),
    [0, 2],
    ([i, j]) => [j, i],
  ),
  moved(
    "movedim",
    shape,
    (x) => movedim(x, [0, 2], [2, 1]),
    [4, 5, 3],
    ([j, k, i]) => [i, j, k],
  ),
  moved(
    "movedim of one",
    shape,
    (x) => movedim(x, -1, 0),
    [5, 3, 4],
    ([k, i, j]) => [i, j, k],
  ),
  reshaped("flatten", shape, (x) => flatten(x), [60]),
  reshaped("flatten of a run", shape, (x) => flatten(x, { startDim: 1 }), [3, 20]),
  reshaped("flatten of nothing", [], (x) => flatten(x), [1]),
  reshaped("unflatten", [3, 20], (x) => unflatten(x, 1, [4, -1]), shape),
  reshaped("reshape", shape, (x) => reshape(x, [6, -1]), [6, 10]),
  reshaped("squeeze", [1, 3, 1, 2], (x) => squeeze(x), [3, 2]),
  reshaped("squeeze of some", [1, 3, 1, 2], (x) => squeeze(x, { dim: [0, 1] }), [3, 1, 2]),
  reshaped("unsqueeze", [3, 2], (x) => unsqueeze(x, 1), [3, 1, 2]),
  reshaped("unsqueeze at the end", [3, 2], (x) => unsqueeze(x, -1), [3, 2, 1]),
  moved(
    "expand",
    [3, 1],
    (x) => expand(x, [2, -1, 4]),
    [2, 3, 4],
    ([, i]) => [i, 0],
  ),
  moved(
    "narrow",
    shape,
    (x) => narrow(x, 1, -3, 2),
    [3, 2, 5],
    ([i, j, k]) => [i, j + 1, k],
  ),
  moved(
    "narrow to nothing",
    shape,
    (x) => narrow(x, 1, 4, 0),
    [3, 0, 5],
    (place) => place,
  ),
  moved(
    "select",
    shape,
    (x) => select(x, 1, -1),
    [3, 5],
    ([i, k]) => [i, 3, k],
  ),
  moved(
    "slice",
    shape,
    (x) => slice(x, { dim: 2, start: -4, step: 2 }),
    [3, 4, 2],
    ([i, j, k]) => [i, j, 1 + 2 * k],
  ),
  moved(
    "slice outside",
    shape,
    (x) => slice(x, { start: 9 }),
    [0, 4, 5],
    (place) => place,
  ),
  moved(
    "diagonal",
    shape,
    (x) => diagonal(x, { offset: 1, dim1: 2, dim2: 0 }),
    [4, 2],
    ([j, d]) => [d + 1, j, d],
  ),
  moved(
    "diagonal below",
    [4, 3],
    (x) => diagonal(x, { offset: -2 }),
    [2],
    ([d]) => [d + 2, d],
  ),
  { name: "split", shape, call: (x) => split(x, 3, { dim: 1 }), oracle: (x) => [part(0, 3)(x), part(3, 1)(x)] },
  {
    name: "split by sizes",
    shape,
    call: (x) => split(x, [1, 0, 3], { dim: 1 }),
    oracle: (x) => [part(0, 1)(x), part(1, 0)(x), part(1, 3)(x)],
  },
  { name: "chunk", shape, call: (x) => chunk(x, 3, { dim: -2 }), oracle: (x) => [part(0, 2)(x), part(2, 2)(x)] },
  {
    name: "unbind",
    shape,
    call: (x) => unbind(x, { dim: 1 }),
    oracle: (x) => [0, 1, 2, 3].map((j) => resultOf([3, 5], ([i, k]) => valueAt(x, [i, j, k]))),
  },
];

testTable(
  "views",
  cases.map(
    ({ name, shape: own, call, oracle }): OperationRow => ({
      name,
      compute: ([x]) => call(x),
      dtypes,
      samples: layouts.map((layout) => ({ inputs: [{ shape: own, layout }], options: undefined })),
      oracle: ([x]) => oracle(x),
      accuracy: { ulps: 0 },
      gradient: true,
    }),
  ),
);

describe("views share their storage", () => {
  const own = (_: unknown, index: number) => index;
  for (const { name, shape: size, call } of cases)
    test(name, () => {
      const x = reshape(tensor(Float32Array.from({ length: size.reduce((a, b) => a * b, 1) }, own)), size);
      resetCodepaths();
      for (const view of [call(x)].flat()) expect(view.storage).toBe(x.storage);
      expect(codepaths()).toEqual([]); // no operation ran, so nothing was copied
    });

  test("reshape copies once if no strides describe the result", () => {
    const x = transpose(reshape(tensor(Float32Array.from({ length: 6 }, own)), [2, 3]), 0, 1);
    resetCodepaths();
    expect(reshape(x, [6]).storage).not.toBe(x.storage);
    expect(codepaths().map(({ operation, calls }) => [operation, calls])).toEqual([["copy", 1]]);
  });

  test("unused parts have a gradient of zero", () => {
    const x = tensor([1, 2, 3], { requiresGrad: true });
    const [first] = withBackend("reference", () => split(x, [2, 1]));
    const [gradient] = withBackend("reference", () => grad(first, [x], { gradOutputs: [tensor([5, 7])] }));
    expect(gradient.toArray()).toEqual([5, 7, 0]);
  });
});

describe("reshape without a copy", () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 4 });
  const layoutOf = sizes.chain((own) =>
    fc.record({
      shape: fc.constant(own),
      order: fc.shuffledSubarray(
        own.map((_, axis) => axis),
        { minLength: own.length, maxLength: own.length },
      ),
      gap: fc.integer({ min: 1, max: 2 }),
      signs: fc.array(fc.constantFrom(1, -1, 0), { minLength: own.length, maxLength: own.length }),
    }),
  );

  /** Strides of axes in a given memory order, some reversed, some repeated. */
  const stridesOf = ({
    shape: own,
    order,
    gap,
    signs,
  }: {
    shape: number[];
    order: number[];
    gap: number;
    signs: number[];
  }) => {
    const strides = new Array<number>(own.length);
    let stride = gap;
    for (const axis of order) {
      strides[axis] = stride * signs[axis];
      stride *= own[axis];
    }
    return strides;
  };
  const addresses = (own: readonly number[], strides: readonly number[]) =>
    placesOf(own).map((place) => place.reduce((sum, coordinate, axis) => sum + coordinate * strides[axis], 0));

  test("strides, if found, give the same addresses in the same order; otherwise no strides do", () => {
    fc.assert(
      fc.property(layoutOf, fc.integer({ min: 0, max: 99 }), (layout, seed) => {
        const strides = stridesOf(layout);
        const target = targetsOf(layout.shape.reduce((a, b) => a * b, 1))[seed % 7];
        const found = viewStrides({ shape: layout.shape, strides }, target);
        const wanted = addresses(layout.shape, strides);
        if (found) expect(addresses(target, found)).toEqual(wanted);
        else expect(hasStrides(target, wanted)).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  /** Seven shapes with the same number of elements. */
  const targetsOf = (count: number): number[][] => {
    const factor = [2, 3, 4].find((divisor) => count % divisor === 0) ?? 1;
    const last = [3, 2].find((divisor) => (count / factor) % divisor === 0) ?? 1;
    return [
      [count],
      [1, count],
      [count, 1],
      [factor, count / factor],
      [count / factor, factor],

      [factor, count / factor / last, last],
      [factor, 1, count / factor, 1],
    ];
  };

  /** Whether any strides give these addresses. The stride of an axis is the step to its second index. */
  const hasStrides = (target: readonly number[], wanted: readonly number[]): boolean => {
    const start = wanted[0];
    const strides = target.map((size, axis) => {
      const second = target.map((_, own) => (own === axis && size > 1 ? 1 : 0));
      return wanted[numberOf(target, second)] - start;
    });
    return addresses(target, strides).every((address, index) => address === wanted[index] - start);
  };
});

test("select accepts every index of an axis, and rejects the next ones beyond both ends", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9 }), fc.integer({ min: -12, max: 12 }), (size, index) => {
      const x = tensor(Array.from({ length: size }, (_, at) => at));
      if (index >= -size && index < size) expect(select(x, 0, index).item()).toBe(index < 0 ? index + size : index);
      else expect(() => select(x, 0, index)).toThrow(`got ${index}`);
      expect(() => select(x, 0, index + 0.5)).toThrow(`got ${index + 0.5}`);
    }),
  );
});
