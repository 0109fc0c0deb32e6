/**
 * The memory traffic of joins, indexing and sorts, as the software device counts it: each byte of the result is written
 * once, each element that it needs is read once. Indices are read twice, by the kernel that checks their range and by
 * the kernel that uses them. The number of passes of a sort is stated below.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import type { DispatchCounters } from "../../../src/backend/metal/report.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import * as library from "../../../src/ops/index.ts";
import { bytesOf } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";

/** Only the software device has counters. */
const isWatched = tested.includes("metal") && metalContext().isSoftware;
const watch = (isOn: boolean): void => {
  for (const setting of ["check", "count"]) metalContext().configure(setting, isOn);
};
afterAll(() => isWatched && watch(false));

const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));

interface Traffic {
  readonly result: Tensor;
  /** Kernels with how often each ran, as "copy 2": without the dtypes in their names. */
  readonly kernels: readonly string[];
  readonly dispatches: readonly DispatchCounters[];
}

function trafficOf(compute: () => Tensor): Traffic {
  const context = metalContext();
  watch(true);
  context.wait();
  context.report({ clear: true });
  const result = on(compute);
  context.wait();
  const { dispatches, findings } = context.report({ clear: true });
  expect(findings).toEqual([]);
  const kernels = dispatches.map(
    ({ kernel, count }) => `${kernel.replace(/(_(float|half|u?int|u?long|ushort))+$/, "")} ${count}`,
  );
  return { result, kernels, dispatches };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const readBy = ({ dispatches }: Traffic): number => sum(dispatches.map(({ counters }) => counters.device_bytes_read));
const writtenBy = ({ dispatches }: Traffic): number =>
  sum(dispatches.map(({ counters }) => counters.device_bytes_written));
const sizeOf = ({ size, dtype }: Tensor): number => size * bytesOf(dtype);

const ROWS = 64;
const COLUMNS = 128;
const SIZE = ROWS * COLUMNS;

type Index = Tensor<"int64" | "int32">;
/** Operands of one dtype, and indices of another: ones, each at the start of a buffer. */
const operandsOf = (dtype: "float32" | "float16", indexDType: "int64" | "int32" = "int64") =>
  on(() => ({
    x: library.ones([ROWS, COLUMNS], { dtype }),
    y: library.ones([ROWS, COLUMNS], { dtype }),
    index: library.ones([ROWS, COLUMNS], { dtype: indexDType }) as Index,
    places: library.ones([ROWS], { dtype: indexDType }) as Index,
    mask: library.ones([ROWS, COLUMNS], { dtype: "bool" }),
  }));
type Operands = ReturnType<typeof operandsOf>;

interface Row {
  readonly name: string;
  readonly compute: (operands: Operands) => Tensor;
  readonly kernels: readonly string[];
  /** Elements of floats that are read, over all threads. */
  readonly elements: number;
  /** Indices that are read. */
  readonly indices?: number;
}

const triangle = sum(Array.from({ length: ROWS }, (_, row) => row + 1));

const rows: readonly Row[] = [
  { name: "cat", compute: ({ x, y }) => library.cat([x, y], { dim: 1 }), kernels: ["copy 2"], elements: 2 * SIZE },
  { name: "stack", compute: ({ x, y }) => library.stack([x, y], { dim: 1 }), kernels: ["copy 2"], elements: 2 * SIZE },
  { name: "flip", compute: ({ x }) => library.flip(x, [0, 1]), kernels: ["copy 1"], elements: SIZE },
  { name: "roll of all", compute: ({ x }) => library.roll(x, 5), kernels: ["copy 2"], elements: SIZE },
  {
    name: "roll of two axes",
    kernels: ["copy 4"],
    elements: SIZE,
    compute: ({ x }) => library.roll(x, [5, 3], { dims: [0, 1] }),
  },
  {
    name: "pad",
    compute: ({ x }) => library.pad(x, [1, 2, 3, 104]),
    kernels: ["copy 5"],
    // the three rows of padding are one run, in which a thread reads the value once for 4 elements of float32 (4
    // bytes), or once for 8 elements of float16 (2 bytes)
    elements: 168 * 131 + 2 * Math.ceil((3 * 131) / 4) - Math.ceil((3 * 131) / 8),
  },
  { name: "repeat", compute: ({ x }) => library.repeat(x, [2, 3]), kernels: ["copy 1"], elements: 6 * SIZE },
  { name: "tril", compute: ({ x }) => library.tril(x), kernels: ["triangle 1"], elements: triangle },
  { name: "triu", compute: ({ x }) => library.triu(x), kernels: ["triangle 1"], elements: SIZE - triangle + ROWS },
  {
    name: "gather",
    kernels: ["find_out_of_range 1", "gather 1"],
    elements: SIZE,
    indices: 2 * SIZE,
    compute: ({ x, index }) => library.gather(x, index, { dim: 1 }),
  },
  {
    name: "indexSelect",
    kernels: ["find_out_of_range 1", "gather 1"],
    elements: SIZE,
    indices: ROWS + SIZE,
    compute: ({ x, places }) => library.indexSelect(x, places, { dim: 0 }),
  },
  {
    name: "oneHot",
    kernels: ["find_out_of_range 1", "one_hot 1"],
    elements: 0,
    indices: ROWS + ROWS * 100,
    compute: ({ places }) => library.oneHot(places, { numClasses: 100 }),
  },
];

describe.if(isWatched)("indexing reads memory once", () => {
  test.each([...rows])(
    "$name reads and writes as little as possible",
    ({ compute, kernels, elements, indices = 0 }) => {
      const wide = trafficOf(() => compute(operands.wide));
      expect(wide.kernels).toEqual([...kernels]);
      expect(writtenBy(wide)).toBe(sizeOf(wide.result));
      // Threads also read parameters, but the same number for every dtype, so the difference comes from the elements.
      expect(readBy(wide) - readBy(trafficOf(() => compute(operands.narrow)))).toBe(elements * 2);
      expect(readBy(wide) - readBy(trafficOf(() => compute(operands.narrowIndices)))).toBe(indices * 4);
    },
  );
  const operands = isWatched
    ? { wide: operandsOf("float32"), narrow: operandsOf("float16"), narrowIndices: operandsOf("float32", "int32") }
    : (undefined as never);

  test("repeated elements are read from memory once", () => {
    const lines = (compute: () => Tensor) =>
      sum(trafficOf(compute).dispatches.map(({ counters }) => counters.cache_lines_read));
    const { x, places } = operands.wide;
    const own = sizeOf(x) / 128;
    expect(lines(() => library.repeat(x, [2, 3]))).toBeLessThanOrEqual(own + 4); // 4 lines of parameters
    expect(lines(() => library.indexSelect(x, places, { dim: 0 }))).toBeLessThanOrEqual(
      (COLUMNS * 4) / 128 + 2 * ((ROWS * 8) / 128) + 2 * 4,
    );
  });

  test("a slice that a threadgroup holds is sorted in one pass, which reads an element once", () => {
    const wide = trafficOf(() => library.sort(operands.wide.x).values);
    expect(wide.kernels).toEqual(["sort_slice 1"]);
    expect(writtenBy(wide)).toBe(SIZE * (4 + 8));
    expect(readBy(wide) - readBy(trafficOf(() => library.sort(operands.narrow.x).values))).toBe(SIZE * 2);
  });

  test("a longer slice is sorted in 1 + log2(blocks) passes, each of which writes each record once", () => {
    const length = 5000; // five blocks of 1024, which are eight after rounding up
    const x = on(() => library.ones([length]));
    const sorted = trafficOf(() => library.sort(x).values);
    expect(sorted.kernels).toEqual(["sort_block 1", "sort_merge 2", "sort_finish 1"]);
    const written = sorted.dispatches.map(({ counters }) => counters.device_bytes_written);
    expect(written).toEqual([length * 8, 2 * length * 8, length * (4 + 8)]);
    const first = trafficOf(() => library.topk(x, 5).values);
    expect(first.dispatches.at(-1)!.counters.device_bytes_written).toBe(5 * (4 + 8));
  });

  test("scatterAdd sorts the indices, then reads each element of x and of the source once", () => {
    const compute = ({ x, index, y }: Operands) => library.scatterAdd(x, index, y, { dim: 1 });
    const wide = trafficOf(() => compute(operands.wide));
    expect(wide.kernels).toEqual(["find_out_of_range 1", "sort_slice 1", "scatter 1"]);
    expect(wide.dispatches.at(-1)!.counters.device_bytes_written).toBe(sizeOf(wide.result));
    expect(readBy(wide) - readBy(trafficOf(() => compute(operands.narrow)))).toBe(2 * SIZE * 2);
  });
});
