/**
 * The memory traffic of the normalization kernels, as the software device counts it: rows in and out once in each pass,
 * and a row of sums for each chunk of rows. Rows longer than a threadgroup can hold are read a second time.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import type { Counters } from "../../../src/backend/metal/report.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { addLayerNorm, addRmsNorm, layerNorm, ones, rmsNorm } from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";

const LINE = 128; // bytes of a cache line
/** The number of additional lines: parameters, and buffers that begin within a line. */
const SPARE_LINES = 8;

/** Only the software device has counters. */
const isWatched = tested.includes("metal") && metalContext().isSoftware;

const watch = (isOn: boolean): void => {
  for (const setting of ["check", "count"]) metalContext().configure(setting, isOn);
};
afterAll(() => isWatched && watch(false));

const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));

/** The counters of each kernel that `body` launches, in order. */
function countersOf(body: () => unknown): Counters[] {
  const context = metalContext();
  watch(true);
  context.wait();
  context.report({ clear: true });
  on(body);
  context.wait();
  const { dispatches, findings } = context.report({ clear: true });
  expect(findings).toEqual([]);
  return dispatches.map(({ counters }) => counters);
}

interface Operands {
  readonly x: Tensor;
  readonly residual: Tensor;
  readonly weight: Tensor;
  readonly bias: Tensor;
}

function operandsOf(shape: readonly number[], dtype: DType): Operands {
  const make = (own: readonly number[]) => on(() => ones(own, { dtype, requiresGrad: true }));
  const [rows, columns] = shape as [number, number];
  const vector = [columns];
  return { x: make([rows, columns]), residual: make([rows, columns]), weight: make(vector), bias: make(vector) };
}

interface Kind {
  readonly name: string;
  /** Operands of the shape of x that each pass reads, and results that it writes. */
  readonly reads: readonly [forward: number, backward: number];
  readonly writes: readonly [forward: number, backward: number];
  /** The length of a row, and the number of vectors with a gradient. */
  readonly statistics: number;
  readonly vectors: number;
  readonly compute: (operands: Operands) => Tensor[];
}

const kinds: readonly Kind[] = [
  {
    name: "layerNorm",
    reads: [1, 2],
    writes: [1, 1],
    statistics: 2,
    vectors: 2,
    compute: ({ x, weight, bias }) => [layerNorm(x, { weight, bias })],
  },
  {
    name: "rmsNorm",
    reads: [1, 2],
    writes: [1, 1],
    statistics: 1,
    vectors: 1,
    compute: ({ x, weight }) => [rmsNorm(x, { weight })],
  },
  {
    name: "addLayerNorm",
    reads: [2, 3],
    writes: [2, 1],
    statistics: 2,
    vectors: 2,
    compute: ({ x, residual, weight, bias }) => Object.values(addLayerNorm(x, residual, { weight, bias })),
  },
  {
    name: "addRmsNorm",
    reads: [2, 3],
    writes: [2, 1],
    statistics: 1,
    vectors: 1,
    compute: ({ x, residual, weight }) => Object.values(addRmsNorm(x, residual, { weight })),
  },
];

/** Both passes of a call: the forward kernel, then the two backward kernels. */
function passesOf({ compute }: Kind, shape: readonly number[], dtype: DType) {
  const operands = operandsOf(shape, dtype);
  const inputs = Object.values(operands) as Tensor[];
  let outputs: Tensor[] = [];
  const forward = countersOf(() => {
    outputs = compute(operands);
  });
  const gradOutputs = outputs.map(() => on(() => ones(shape, { dtype })));
  const backward = countersOf(() => grad(outputs, inputs, { gradOutputs, allowUnused: true }));
  expect([forward.length, backward.length]).toEqual([1, 2]);
  return [forward[0], backward[0], backward[1]] as const;
}

const linesOf = (bytes: number): number => Math.ceil(bytes / LINE);

/**
 * Elements that all threads together read. Weight and bias are read once per chunk. The backward pass of longer rows
 * also reads them for the sums of each row, from a cache, as the counts of lines show.
 */
const elementsRead = ({ reads, vectors }: Kind, rows: number, columns: number, isLong: boolean) => ({
  forward: columns * (rows * (reads[0] + (isLong ? 1 : 0)) + vectors * chunksOf(rows).forward),
  backward: columns * (rows * (reads[1] + (isLong ? 2 + 1 : 0)) + chunksOf(rows).backward),
});

/**
 * In the forward pass, a chunk has one row if there are at most this many rows. In the backward pass, it has 2 to 4.
 */
const CHUNKS = 4096;
const chunksOf = (rows: number) => ({
  forward: Math.ceil(rows / Math.ceil(rows / CHUNKS)),
  backward: Math.ceil(rows / Math.max(Math.min(Math.max(Math.floor(rows / 64), 2), 4), Math.ceil(rows / 512))),
});

/** Rows that fit a SIMD-group, many of them, rows that fit a threadgroup, and longer ones, which are read twice. */
const cases: readonly (readonly [string, readonly [number, number], boolean])[] = [
  ["rows of a SIMD-group", [37, 512], false],
  ["rows of a SIMD-group each of which takes several", [4098, 17], false],
  ["rows of a threadgroup", [5, 4096], false],
  ["rows of a large threadgroup", [9, 4097], false],
  ["longer rows", [5, 8193], true],
];

describe.skipIf(!isWatched)("norms move each element once", () => {
  for (const kind of kinds)
    test.each(cases)(`${kind.name} of %s moves each element once`, (_, shape, isLong) => {
      const { reads, writes, statistics, vectors } = kind;
      const [rows, columns] = shape;
      const [elements, chunks] = [rows * columns, chunksOf(rows).backward];
      const wide = passesOf(kind, shape, "float32");
      const narrow = passesOf(kind, shape, "float16");
      const [forward, backward, sums] = wide;
      // float32 reads 2 bytes more per element than float16; all other data has the same dtype in both.
      const [readForward, readBackward] = wide.map(
        (own, at) => (own.device_bytes_read - narrow[at].device_bytes_read) / 2,
      );
      const expected = elementsRead(kind, rows, columns, isLong);
      expect({ forward: readForward, backward: readBackward }).toEqual(expected);
      // For longer rows, the sum is read again instead of its terms.
      const sumAgain = isLong && writes[0] === 2 ? elements : 0;
      expect(forward.cache_lines_read).toBeLessThanOrEqual(
        linesOf(4 * (reads[0] * elements + sumAgain + vectors * columns)) + SPARE_LINES,
      );
      expect(forward.device_bytes_written).toBe(4 * (writes[0] * elements + statistics * rows));
      expect(backward.cache_lines_read).toBeLessThanOrEqual(
        linesOf(4 * (reads[1] * elements + columns + statistics * rows)) + SPARE_LINES,
      );
      expect(backward.device_bytes_written).toBe(4 * (writes[1] * elements + vectors * chunks * columns));
      expect(sums.cache_lines_read).toBeLessThanOrEqual(linesOf(4 * vectors * chunks * columns) + SPARE_LINES);
      expect(sums.device_bytes_written).toBe(4 * vectors * columns);
    });
});
