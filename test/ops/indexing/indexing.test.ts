import { describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { backendNames } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { toDType } from "../../../src/ops/copy/cast.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { add } from "../../../src/ops/elementwise/arithmetic.ts";
import { gather, indexSelect, takeAlongDim } from "../../../src/ops/indexing/gather.ts";
import type { IndexDType } from "../../../src/ops/indexing/indices.ts";
import { maskedFill, maskedFill_ } from "../../../src/ops/indexing/masked_fill.ts";
import { oneHot } from "../../../src/ops/indexing/one_hot.ts";
import { scatter } from "../../../src/ops/indexing/scatter.ts";
import { indexAdd, scatterAdd } from "../../../src/ops/indexing/scatter_add.ts";
import { tril, triu } from "../../../src/ops/indexing/triangle.ts";
import "../../../src/ops/methods.ts";
import { transpose } from "../../../src/ops/view/permute.ts";
import { slice } from "../../../src/ops/view/slice.ts";
import { type DType, isFloat } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { numberOf, placesOf, resultOf, valueAt } from "../coordinates.ts";
import { tested, testTable } from "../run.ts";
import type { Block, Layout, OperandSpec, Values } from "../samples.ts";
import type { Expected, OperationRow, Sample } from "../table.ts";

const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];
const all: readonly DType[] = [...floats, "int64", "int32", "uint32", "int8", "uint8", "bool"];
const layouts: readonly Layout[] = ["contiguous", "offset", "transposed", "strided", "reversed", "expanded"];

type Index = Tensor<IndexDType>;
interface Options {
  readonly dim: number;
  readonly alpha?: number;
}

/** Indices of an axis of `size`. */
const indices = (shape: readonly number[], size: number, layout: Layout, dtype: IndexDType): OperandSpec => ({
  shape,
  layout,
  dtype,
  values: { integers: [0, size - 1] },
});

/** A sample in every layout, with the index in a different layout than the operand, in both dtypes. */
const samples = (
  shape: readonly number[],
  index: readonly number[],
  options: Options,
  source?: readonly number[],
): Sample<Options>[] =>
  layouts.map((layout, at) => ({
    name: `[${shape}] by [${index}] along ${options.dim} ${layout}`,
    inputs: [
      { shape, layout },
      indices(index, shape.at(options.dim)!, layouts[(at + 1) % 5], at % 2 === 0 ? "int64" : "int32"),
      ...(source ? [{ shape: source, layout: layouts[(at + 2) % 6] }] : []),
    ],
    options,
  }));

/** A shape of the highest rank. */
const highest = [2, 1, 2, 1, 2, 1, 2, 3];

const axisOf = (dim: number, rank: number) => (dim < 0 ? dim + rank : dim);

const gatherOracle = ([x, index]: readonly Block[], { dim }: Options): Expected =>
  resultOf(index.shape, (coordinates) =>
    valueAt(x, coordinates.with(axisOf(dim, coordinates.length), valueAt(index, coordinates))),
  );

const triangle = (
  name: string,
  call: (x: Tensor, options: { diagonal: number }) => Tensor,
  stays: (row: number, column: number, diagonal: number) => boolean,
): OperationRow<{ diagonal: number }> => ({
  name,
  compute: ([x], options) => call(x, options),
  dtypes: all,
  samples: [
    ...layouts.flatMap((layout) =>
      [-2, 0, 3].map((diagonal) => ({ inputs: [{ shape: [2, 3, 5], layout }], options: { diagonal } })),
    ),
    { name: "empty", inputs: [{ shape: [3, 0] }], options: { diagonal: 0 } },
    ...layouts.map((layout) => ({ inputs: [{ shape: highest, layout }], options: { diagonal: 1 } })),
    { name: "large", inputs: [{ shape: [129, 65] }], options: { diagonal: 1 } },
    {
      name: "not finite",
      dtypes: floats,
      gradient: false,
      options: { diagonal: 0 },
      inputs: [{ shape: [3, 3], values: { list: [Number.NaN, Infinity, -Infinity, 1] } }],
    },
  ],
  oracle: ([x], { diagonal }) =>
    resultOf(x.shape, (coordinates) =>
      stays(coordinates.at(-2)!, coordinates.at(-1)!, diagonal) ? valueAt(x, coordinates) : 0,
    ),
  accuracy: { ulps: 0 },
  gradient: true,
});

interface FillOptions {
  /** A number instead of a tensor. */
  readonly plain?: number;
}

/** The common shape, sizes aligned at the last axis. */
const broadcast = (a: readonly number[], b: readonly number[]): number[] =>
  Array.from({ length: Math.max(a.length, b.length) }, (_, fromEnd) => {
    const [one, other] = [a.at(-1 - fromEnd) ?? 1, b.at(-1 - fromEnd) ?? 1];
    return one === 1 ? other : one;
  }).reverse();

const maskedFills = (
  name: string,
  dtypes: readonly DType[],
  options: FillOptions,
  shapes: readonly (readonly [x: readonly number[], mask: readonly number[]])[],
): OperationRow<FillOptions> => ({
  name,
  dtypes,
  gradient: true,
  accuracy: { ulps: 0 },
  compute: ([x, mask, value], { plain }) => maskedFill(x, mask as Tensor<"bool">, plain ?? value),
  samples: shapes.flatMap(([shape, mask]) =>
    layouts.map((layout, at) => ({
      name: `[${shape}] by [${mask}] ${layout}`,
      inputs: [
        { shape, layout },
        { shape: mask, layout: layouts[(at + 1) % 6], dtype: "bool" },
        ...("plain" in options ? [] : [{ shape: [] }]),
      ],
      options,
    })),
  ),
  oracle: ([x, mask, value], { plain }) =>
    resultOf(broadcast(x.shape, mask.shape), (coordinates) =>
      broadcastAt(mask, coordinates) === 1 ? (plain ?? value.values[0]) : broadcastAt(x, coordinates),
    ),
});

const broadcastAt = (block: Block, coordinates: readonly number[]): number =>
  valueAt(
    block,
    coordinates.slice(coordinates.length - block.shape.length).map((at, axis) => (block.shape[axis] === 1 ? 0 : at)),
  );

testTable("indexing", [
  {
    name: "gather",
    compute: ([x, index], options) => gather(x, index as Index, options),
    dtypes: all,
    samples: [
      ...samples([3, 4, 5], [3, 2, 5], { dim: 1 }),
      ...samples([3, 4, 5], [2, 6, 3], { dim: -2 }),
      ...samples([7], [5], { dim: 0 }),
      ...samples(highest, highest.with(-1, 4), { dim: -1 }),
      ...samples(highest, highest.with(2, 3).with(0, 1), { dim: 2 }),
      ...samples([3, 0], [2, 0], { dim: 0 }),
      { name: "none", inputs: [{ shape: [3, 2] }, indices([3, 0], 2, "contiguous", "int64")], options: { dim: 1 } },
      { name: "large", inputs: [{ shape: [1031] }, indices([4099], 1031, "contiguous", "int32")], options: { dim: 0 } },
    ],
    oracle: gatherOracle,
    accuracy: { ulps: 0 },
    gradient: true,
  },
  {
    name: "indexSelect",
    compute: ([x, index], options) => indexSelect(x, index as Index, options),
    dtypes: all,
    samples: [
      ...samples([3, 4, 5], [6], { dim: 1 }),
      ...samples([17, 33], [9], { dim: 0 }),
      ...samples([17, 3], [9], { dim: -1 }),
      ...samples(highest, [5], { dim: 4 }),
      ...samples([4, 0, 3], [5], { dim: 0 }),
      { name: "none", inputs: [{ shape: [3, 2] }, indices([0], 3, "contiguous", "int64")], options: { dim: 0 } },
    ],
    oracle: ([x, index], { dim }) => {
      const axis = axisOf(dim, x.shape.length);
      return resultOf(x.shape.with(axis, index.values.length), (coordinates) =>
        valueAt(x, coordinates.with(axis, index.values[coordinates[axis]])),
      );
    },
    accuracy: { ulps: 0 },
    gradient: true,
  },
  {
    name: "takeAlongDim",
    compute: ([x, index], options) => takeAlongDim(x, index as Index, options),
    dtypes: all,
    samples: [
      ...samples([3, 4], [3, 6], { dim: 1 }),
      ...samples([3, 4], [1, 6], { dim: 1 }),
      ...samples([1, 4, 5], [3, 2, 1], { dim: 1 }),
      ...samples(highest, highest.with(-1, 4), { dim: 7 }),
      ...samples([3, 0], [2, 0], { dim: 0 }),
    ],
    oracle: ([x, index], { dim }) => {
      const axis = axisOf(dim, x.shape.length);
      const shape = broadcast(x.shape.with(axis, 1), index.shape.with(axis, 1)).with(axis, index.shape[axis]);
      return resultOf(shape, (coordinates) => {
        const at = broadcastAt(index, coordinates.with(axis, index.shape[axis] === 1 ? 0 : coordinates[axis]));
        return broadcastAt(x, coordinates.with(axis, at));
      });
    },
    accuracy: { ulps: 0 },
    gradient: true,
  },
  {
    name: "scatter",
    compute: ([x, index, source], options) => scatter(x, index as Index, source, options),
    dtypes: all,
    samples: [
      ...samples([3, 4, 5], [3, 6, 5], { dim: 1 }, [3, 6, 5]),
      ...samples([3, 4, 5], [2, 6, 3], { dim: 1 }, [3, 7, 4]),
      ...samples([5], [40], { dim: 0 }, [40]),
      ...samples(highest, highest.with(-1, 4), { dim: 7 }, highest.with(-1, 5)),
      ...samples([3, 0], [2, 0], { dim: 0 }, [2, 0]),
      ...samples([3, 2], [3, 1100], { dim: -1 }, [3, 1100]),
      {
        name: "none",
        inputs: [{ shape: [3] }, indices([0], 3, "contiguous", "int64"), { shape: [2] }],
        options: { dim: 0 },
      },
    ],
    oracle: ([x, index, source], { dim }) => {
      const axis = axisOf(dim, x.shape.length);
      const values = [...x.values];
      for (const coordinates of placesOf(index.shape)) // row-major: the last element wins
        values[numberOf(x.shape, coordinates.with(axis, valueAt(index, coordinates)))] = valueAt(source, coordinates);
      return { shape: x.shape, values };
    },
    accuracy: { ulps: 0 },
    gradient: true,
  },
  {
    name: "scatterAdd",
    compute: ([x, index, source], options) => scatterAdd(x, index as Index, source, options),
    dtypes: all,
    samples: [
      ...samples([3, 4, 5], [3, 6, 5], { dim: 1 }, [3, 6, 5]),
      ...samples([3, 4, 5], [2, 6, 3], { dim: 1 }, [3, 7, 4]),
      ...samples([5], [40], { dim: 0 }, [40]),
      ...samples(highest, highest.with(-1, 4), { dim: 7 }, highest.with(-1, 5)),
      ...samples([3, 0], [2, 0], { dim: 0 }, [2, 0]),
      ...samples([3, 2], [3, 1100], { dim: -1 }, [3, 1100]),
      {
        name: "none",
        inputs: [{ shape: [3] }, indices([0], 3, "contiguous", "int64"), { shape: [2] }],
        options: { dim: 0 },
      },
    ],
    oracle: ([x, index, source], { dim }, round) => {
      const axis = axisOf(dim, x.shape.length);
      return added(
        x,
        round,
        placesOf(index.shape).map((coordinates) => [
          coordinates.with(axis, valueAt(index, coordinates)),
          valueAt(source, coordinates),
        ]),
      );
    },
    accuracy: { flash: true },
    gradient: true,
  },
  {
    name: "indexAdd",
    compute: ([x, index, source], options) => indexAdd(x, index as Index, source, options),
    dtypes: all,
    samples: [
      ...samples([3, 4, 5], [6], { dim: 1 }, [3, 6, 5]),
      ...samples([7, 33], [50], { dim: 0 }, [50, 33]),
      ...samples(highest, [5], { dim: 4 }, highest.with(4, 5)),
      ...samples([4, 0], [3], { dim: 0 }, [3, 0]),
      ...samples([3, 4], [6], { dim: -1, alpha: 2 }, [3, 6]).map((sample) => ({ ...sample, dtypes: floats })),
    ],
    oracle: ([x, index, source], { dim, alpha = 1 }, round) => {
      const axis = axisOf(dim, x.shape.length);
      return added(
        x,
        round,
        placesOf(source.shape).map((coordinates) => [
          coordinates.with(axis, index.values[coordinates[axis]]),
          round(alpha * valueAt(source, coordinates)),
        ]),
      );
    },
    accuracy: { flash: true },
    gradient: true,
  },
  maskedFills("maskedFill", all, { plain: 1 }, [
    [
      [2, 3, 5],
      [2, 3, 5],
    ],
    [
      [2, 3, 5],
      [3, 1],
    ],
    [[0, 3], [3]],
    [
      [2, 1, 2, 1, 2, 1, 2, 3],
      [2, 1, 1, 2, 1, 3],
    ],
    [[257, 33], [33]],
  ]),
  {
    ...maskedFills("maskedFill with a tensor", floats, {}, [
      [
        [2, 3, 5],
        [2, 3, 5],
      ],
      [
        [3, 1],
        [2, 1, 5],
      ],
      [[], [4]],
      [[0, 3], [3]],
    ]),
    // the gradient of the value is a sum over all elements
    sumLength: ([x, mask]) => broadcast(x.shape, mask.shape).reduce((a, b) => a * b, 1),
  },
  triangle("tril", tril, (row, column, diagonal) => column <= row + diagonal),
  triangle("triu", triu, (row, column, diagonal) => column >= row + diagonal),
  {
    name: "oneHot",
    compute: ([index]) => oneHot(index as Index, { numClasses: 7 }),
    dtypes: ["int64", "int32"],
    samples: layouts.flatMap((layout) =>
      [[3, 5], [], [0], [2, 1, 2, 1, 2, 1, 3]].map((shape) => ({
        inputs: [{ shape, layout, values: { integers: [0, 6] } satisfies Values }],
        options: undefined,
      })),
    ),
    oracle: ([index]) => ({
      ...resultOf([...index.shape, 7], (coordinates) =>
        valueAt(index, coordinates.slice(0, -1)) === coordinates.at(-1) ? 1 : 0,
      ),
      dtype: "int64",
    }),
    accuracy: { ulps: 0 },
    gradient: false,
  },
]);

/** x with values added at coordinates, one after the other, rounded each time; integers wrap, bools are or-ed. */
function added(x: Block, round: (value: number) => number, pairs: readonly (readonly [readonly number[], number])[]) {
  const values = [...x.values];
  const store = isFloat(x.dtype) ? round : wrapped(x.dtype);
  for (const [coordinates, value] of pairs) {
    const at = numberOf(x.shape, coordinates);
    values[at] = store(values[at] + value);
  }
  return { shape: x.shape, values };
}

function wrapped(dtype: DType): (value: number) => number {
  if (dtype === "bool") return (value) => Math.min(value, 1);
  const bits = { int64: 64, int32: 32, uint32: 32, int8: 8, uint8: 8 }[dtype as "int64"];
  const wrap = dtype.startsWith("u") ? BigInt.asUintN : BigInt.asIntN;
  return (value) => Number(wrap(bits, BigInt(value)));
}

describe.each([...backendNames])("indexing on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => {
    if (backend === "metal") metalContext().configure("check", true);
    return withStrict(true, () => withBackend(backend, body));
  };

  test("an index out of range is reported with its coordinates, and nothing outside is read", () => {
    const outcome = (call: () => Tensor) => {
      try {
        return on(() => call().dataSync());
      } catch (error) {
        return (error as Error & { code: string }).code + (error as Error).message;
      }
    };
    const x = on(() =>
      tensor([
        [1, 2, 3],
        [4, 5, 6],
      ]),
    );
    const index = on(() =>
      tensor([
        [0n, 1n],
        [2n, 3n],
      ]),
    );
    expect(outcome(() => gather(x, index, { dim: 1 }))).toMatch(
      /indexOutOfRange.*indices of 0 to 2, got 3 at \[1, 1\]/,
    );
    expect(outcome(() => indexSelect(x, tensor([0n, -1n]), { dim: 1 }))).toMatch(/indexOutOfRange.*got -1 at \[1\]/);
    expect(outcome(() => scatterAdd(x, index, x, { dim: 0 }))).toMatch(
      /\[scatterAdd\] expected indices of 0 to 1, got 2 at \[1, 0\]/,
    );
    expect(outcome(() => indexAdd(x, tensor([0n, 2n]), x, { dim: 0 }))).toMatch(
      /\[indexAdd\] expected indices of 0 to 1, got 2 at \[1\]/,
    );
    expect(outcome(() => oneHot(index, { numClasses: 2 }))).toMatch(
      /\[oneHot\] expected indices of 0 to 1, got 2 at \[1, 0\]/,
    );
    expect(outcome(() => gather(x, tensor([[0n, 2n ** 62n]]), { dim: 1 }))).toMatch(/got 4611686018427387904 at/);
    // the error is reported for each call
    expect(outcome(() => gather(x, index, { dim: 1 }))).toMatch(/indexOutOfRange/);
    if (backend === "metal") {
      metalContext().wait();
      expect(metalContext().report({ clear: true }).findings).toEqual([]);
    }
  });

  test("maskedFill_ changes only the elements that a view shares", () => {
    on(() => {
      const x = tensor([
        [1, 2, 3],
        [4, 5, 6],
      ]);
      const right = slice(x, { dim: 1, start: 1 });
      expect(maskedFill_(right, tensor([true, false]), -7)).toBe(right);
      expect(x.toArray()).toEqual([
        [1, -7, 3],
        [4, -7, 6],
      ]);
      expect(maskedFill_(tensor([1, 2], { dtype: "uint8" }), tensor([true, false]), 3.9).toArray()).toEqual([3, 2]);
      expect(maskedFill_(tensor([1, 2]), tensor(true), tensor(8n)).toArray()).toEqual([8, 8]);
    });
  });

  test("the sum of many contributions is accurate and has the same bits each time", () => {
    const count = 20_000;
    const values = Float32Array.from({ length: count }, (_, i) => Math.fround(Math.sin(i) * 10 ** ((i % 7) - 2)));
    const sum = () =>
      on(() => scatterAdd(tensor([0, 1]), tensor(new BigInt64Array(count)), tensor(values), { dim: 0 }).dataSync());
    const exact = values.reduce((total, value) => total + value, 0);
    const first = sum();
    expect(first[0]).toBe(Math.fround(exact));
    expect(first[1]).toBe(1);
    for (let run = 0; run < 3; run++) expect(sum()).toEqual(first);
  });
});

describe("sums have the same bits for any threads and order", () => {
  const SUMS = 3000;
  const scattered = (dtype: DType) => {
    const values = tensor(Float32Array.from({ length: SUMS * 3 }, (_, i) => Math.sin(i * 7.1) * 10 ** (i % 5)));
    const index = tensor(BigInt64Array.from({ length: SUMS }, (_, i) => BigInt((i * i + 3 * i) % 11)));
    const source = toDType(values.reshape([3, SUMS]), dtype);
    const x = toDType(slice(values, { end: 33 }).reshape([3, 11]), dtype);
    return [
      scatterAdd(x, index.expand([3, SUMS]), source, { dim: 1 }),
      indexAdd(x, index, source, { dim: 1 }),
      indexAdd(transpose(x, 0, 1), index, transpose(source, 0, 1), { dim: 0 }),
    ].map((result) => result.toArray());
  };
  const everyDType = () => floats.filter((dtype) => dtype !== "float64").map(scattered);

  test("sums have the same bits on cpu with any number of threads", () => {
    const { native } = cpuLibrary();
    const first = withBackend("cpu", everyDType);
    for (const threads of [1, 2, 3, 7]) {
      configure(native, "threads", String(threads));
      expect(withBackend("cpu", everyDType)).toEqual(first);
    }
    configure(native, "threads", "auto");
    expect(first[0]).toEqual(withBackend("reference", () => scattered("float32"))); // both sum in float64
  });

  test.if(tested.includes("metal") && metalContext().isSoftware)(
    "sums have the same bits on metal with any number of workers in any order",
    () => {
      const context = metalContext();
      const on = () => withStrict(true, () => withBackend("metal", everyDType));
      const { workers: usual, seed: usualSeed } = context.report().settings!;
      const first = on();
      for (const [workers, seed] of [
        [1, 1],
        [2, 2],
        [3, 3],
        [2, 4],
      ] as const) {
        context.configure("workers", workers);
        context.configure("seed", seed);
        expect(on()).toEqual(first);
      }
      context.configure("workers", usual);
      context.configure("seed", usualSeed);
    },
  );
});

describe.if(tested.includes("metal"))(
  "an index out of range on metal is reported to each reader of a dependent tensor",
  () => {
    const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));
    const x = on(() => tensor([1, 2, 3]));
    const indicesOf = (...values: bigint[]) => on(() => tensor(values));
    const selected = (index: Index) => on(() => indexSelect(x, index, { dim: 0 }));

    test("every read of the tensor throws, and reads of other tensors do not", async () => {
      const result = selected(indicesOf(1n, 3n));
      metalContext().wait();
      expect(indicesOf(1n).shape).toEqual([1]);
      for (let time = 0; time < 3; time++)
        await expect(result.data()).rejects.toThrow("[indexSelect] expected indices of 0 to 2, got 3 at [1]");
      expect(on(() => add(selected(indicesOf(2n)), x).toArray())).toEqual([4, 5, 6]);
      expect(() => result.toArray()).toThrow("got 3 at [1]");
    });

    test("each invalid call has a separate error", () => {
      const results = [4n, 0n, -5n, 6n].map((value) => selected(indicesOf(value)));
      for (let time = 0; time < 2; time++)
        for (const [at, wrong] of [
          [3, 6],
          [0, 4],
          [2, -5],
        ] as const)
          expect(() => results[at].dataSync()).toThrow(`got ${wrong} at [0]`);
      expect(results[1].toArray()).toEqual([1]);
    });

    test("the error names the index, although the indices were disposed of", () => {
      const index = indicesOf(7n);
      const result = selected(index);
      index.dispose();
      expect(() => result.dataSync()).toThrow("got 7 at [0]");
      expect(index.storage.isReleased).toBe(true);
    });

    test("the error has the index as it was at the call", () => {
      const index = indicesOf(8n);
      const result = selected(index);
      on(() => maskedFill_(index, tensor(true), 1));
      expect(index.toArray()).toEqual([1n]);
      expect(() => result.toArray()).toThrow("got 8 at [0]");
    });

    test("a sum that depends on an invalid index throws at each read", () => {
      const sums = on(() => scatterAdd(x, tensor([0n, 3n, -1n]), tensor([10, 20, 30]), { dim: 0 }));
      for (let time = 0; time < 2; time++)
        expect(() => sums.dataSync()).toThrow("[scatterAdd] expected indices of 0 to 2, got 3 at [1]");
      expect(x.toArray()).toEqual([1, 2, 3]);
    });
  },
);
