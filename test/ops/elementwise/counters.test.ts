/**
 * The memory traffic of each elementwise kernel, as the software device counts it: every operand once, the result once,
 * nothing else.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import type { Counters } from "../../../src/backend/metal/report.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { toDType } from "../../../src/ops/copy/cast.ts";
import { clone } from "../../../src/ops/copy/copy.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { definitions } from "../../../src/ops/elementwise/define.ts";
import { binaryOperations, ternaryOperations, unaryOperations } from "../../../src/ops/elementwise/primitive.ts";
import * as operations from "../../../src/ops/index.ts";
import { bytesOf, type DType, dtypes } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { testVariants } from "../../linalg/variants.ts";
import { place, Random } from "../samples.ts";

const LINE = 128; // bytes of a cache line
const PARAMETER_LINES = 3; // a loop nest has 46 numbers of 8 bytes
const random = new Random(7);

const onMetal = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));
const watch = (isOn: boolean): void => {
  for (const setting of ["check", "count"]) metalContext().configure(setting, isOn);
};
afterAll(() => watch(false));

/** The counters of the one kernel that `body` launches. */
function countersOf(body: () => Tensor): Counters {
  const context = metalContext();
  watch(true);
  context.wait();
  context.report({ clear: true });
  onMetal(body);
  context.wait();
  const { dispatches, findings } = context.report({ clear: true });
  expect(findings).toEqual([]);
  expect(dispatches.map(({ count }) => count)).toEqual([1]);
  return dispatches[0].counters;
}

/**
 * The bytes of the loop nest that every thread reads in addition: the number of elements; and if the loop has several
 * axes, or threads compute single elements, also the rank, the sizes, and each operand's offset and strides.
 */
const parametersOf = (operands: number, rank: number, isInRuns: boolean): number =>
  isInRuns && rank === 1 ? 8 : 8 * (2 + operands + rank * (1 + operands));

const linesOf = (bytes: number): number => Math.ceil(bytes / LINE);
const sizeOf = ({ size, dtype }: Tensor): number => size * bytesOf(dtype);
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Elements per thread, if each operand's elements are adjacent or a single one. */
const widthOf = (operands: readonly Tensor[]): number => (operands.every(({ dtype }) => bytesOf(dtype) <= 2) ? 8 : 4);

interface Layout {
  /** The loop nest after merging axes. */
  readonly rank: number;
  /** Whether threads compute several elements. Default true. */
  readonly isInRuns?: boolean;
  /** Elements per thread. Default {@link widthOf}. */
  readonly width?: number;
  /** Operands whose elements are all read. Default all. */
  readonly read?: readonly Tensor[];
}

/**
 * The result is written once. Each of its elements reads one element of each operand, and each thread reads one element
 * of an operand that is repeated along the last axis. Memory is read once: there are no more cache lines than those of
 * the operands.
 */
function checkTraffic(
  compute: (...inputs: Tensor[]) => Tensor,
  inputs: readonly Tensor[],
  { rank, isInRuns = true, width, read = inputs }: Layout,
) {
  let output: Tensor | undefined;
  const counters = countersOf(() => {
    output = compute(...inputs);
    return output;
  });
  const { size, shape } = output!;
  const threads = isInRuns ? Math.ceil(size / (width ?? widthOf([...inputs, output!]))) : size;
  const readOf = (input: Tensor) => (input.shape.at(-1) === shape.at(-1) ? size : threads) * bytesOf(input.dtype);
  const parameterLines = isInRuns && rank === 1 ? 1 : PARAMETER_LINES;
  expect(counters).toMatchObject({
    threads,
    device_bytes_written: sizeOf(output!),
    device_bytes_read: sum(read.map(readOf)),
    constant_bytes_read: threads * parametersOf(inputs.length + 1, rank, isInRuns),
    cache_lines_written: linesOf(sizeOf(output!)),
    cache_lines_read: parameterLines + sum(read.map((input) => linesOf(sizeOf(input)))),
    threadgroup_bytes_read: 0,
    threadgroup_bytes_written: 0,
  });
}

/** Ones of a shape, at the start of a buffer. */
const ones = (shape: readonly number[], dtype: DType = "float32"): Tensor =>
  onMetal(() => {
    const count = shape.reduce((product, size) => product * size, 1);
    return tensor(new Array<number>(count).fill(1), { dtype, shape: [...shape] });
  });

const transposed = (x: Tensor): Tensor => onMetal(() => operations.transpose(x, 0, 1));

type Operation = (...inputs: Tensor[]) => Tensor;
/** The names of ternary operations without dtype promotion. */
const computeOf = (name: string): Operation => definitions.get(name)!.compute;
const dtypeOf = (name: string): DType => {
  const { takes } = definitions.get(name)!;
  return takes === "bits" || takes === "integers" ? "int32" : "float32";
};

testVariants(import.meta.path, "unary exp$|binary add$|a dense one");

describe("unary", () => {
  test.each([...unaryOperations.names])("%s", (name) => {
    const compute = computeOf(name);
    checkTraffic(compute, [ones([37, 33], dtypeOf(name))], { rank: 1 });
    checkTraffic(compute, [transposed(ones([64, 32], dtypeOf(name)))], { rank: 1 }); // in the order of memory
    checkTraffic(compute, [transposed(ones([16, 16], dtypeOf(name)))], { rank: 2, isInRuns: false });
  });
});

describe("binary", () => {
  test.each([...binaryOperations.names])("%s", (name) => {
    const compute = computeOf(name);
    const [square, row, column, scalar] = [[32, 32], [32], [32, 1], []].map((shape) => ones(shape, dtypeOf(name)));
    checkTraffic(compute, [square, ones([32, 32], dtypeOf(name))], { rank: 1 });
    checkTraffic(compute, [square, row], { rank: 2 });
    checkTraffic(compute, [column, row], { rank: 2 });
    checkTraffic(compute, [square, scalar], { rank: 1 });
  });
});

describe("ternary", () => {
  test.each(ternaryOperations.names.filter((name) => name !== "where" && name !== "softplus"))("%s", (name) => {
    const compute = computeOf(name);
    checkTraffic(compute, [ones([32, 32]), ones([32, 32]), ones([32, 32])], { rank: 1 });
    checkTraffic(compute, [ones([32, 32]), ones([32]), ones([])], { rank: 2 });
  });

  test("where reads the selected operand", () => {
    const [condition, a, b] = [ones([32, 32], "bool"), ones([32, 32]), ones([32, 32])];
    checkTraffic(computeOf("where"), [condition, a, b], { rank: 1, read: [condition, a] });
  });

  test("softplus reads and writes each element once", () => {
    const x = ones([32, 32]);
    const withParameters: Operation = (input) => operations.softplus(input);
    onMetal(() => withParameters(x)); // the first call creates tensors for its parameters
    const counters = countersOf(() => withParameters(x));
    expect(counters.device_bytes_written).toBe(sizeOf(x));
    expect(counters.cache_lines_read).toBe(1 + linesOf(sizeOf(x)) + 2);
  });
});

describe("kernels that read elements of two bytes by eight", () => {
  const cases: readonly (readonly [string, DType, Operation, number])[] = [
    ["exp", "float16", computeOf("exp"), 1],
    ["exp", "bfloat16", computeOf("exp"), 1],
    ["isnan", "float16", computeOf("isnan"), 1],
    ["add", "float16", computeOf("add"), 2],
    ["lt", "bfloat16", computeOf("lt"), 2],
    ["lerp", "float16", computeOf("lerp"), 3],
  ];
  test.each(cases)("%s in %s accesses each element once", (_, dtype, compute, count) => {
    const operandsOf = (shape: readonly number[]) => Array.from({ length: count }, () => ones(shape, dtype));
    checkTraffic(compute, operandsOf([37, 33]), { rank: 1 });
    checkTraffic(compute, operandsOf([4, 3]), { rank: 1 });
  });

  test.each([8, 12, 37, 1000])("each of %i elements is computed separately", (size) => {
    const values = Array.from({ length: size }, (_, index) => (index % 100) - 7);
    for (const dtype of ["float16", "bfloat16", "int8"] as const) {
      const x = onMetal(() => toDType(tensor(values, { dtype: "float32" }), dtype));
      const of = (compute: Operation) =>
        Array.from(onMetal(() => toDType(compute(x), "float32")).dataSync() as Float32Array, (value) => value + 0);
      expect(of((own) => operations.neg(own))).toEqual(values.map((value) => 0 - value));
      expect(of((own) => operations.add(own, 1))).toEqual(values.map((value) => value + 1));
      expect(of((own) => operations.lt(own, 3))).toEqual(values.map((value) => Number(value < 3)));
      expect(of((own) => operations.clamp(own, { min: 0, max: 5 }))).toEqual(
        values.map((value) => Math.min(Math.max(value, 0), 5)),
      );
    }
  });

  test("each element is accessed once, for rows of any length", () => {
    const add = computeOf("add");
    const rowsOf = (size: number) => [ones([32, size], "float16"), ones([size], "float16")];
    checkTraffic(add, rowsOf(64), { rank: 2, width: 8 });
    checkTraffic(add, rowsOf(36), { rank: 2, width: 4 });
    checkTraffic(add, rowsOf(33), { rank: 2, isInRuns: false });
  });
});

describe("copies access each element once", () => {
  const onDevice = dtypes.filter((dtype) => dtype !== "float64");

  test.each(onDevice)("casts from %s access each element once", (from) => {
    for (const to of onDevice)
      if (to !== from) checkTraffic((x) => toDType(x, to), [ones([37, 33], from)], { rank: 1 });
  });

  test("a dense one, a transposed one and one of a view", () => {
    const x = ones([64, 32]);
    checkTraffic((input) => clone(input), [x], { rank: 1 });
    checkTraffic((input) => clone(input), [transposed(x)], { rank: 2, isInRuns: false });
    const offset = place(
      { shape: [64, 32], dtype: "float32", values: new Array(2048).fill(1) },
      "strided",
      "metal",
      random,
    );
    const counters = countersOf(() => clone(offset));
    expect(counters.device_bytes_read).toBe(offset.size * bytesOf("float32"));
    expect(counters.constant_bytes_read).toBe(offset.size * parametersOf(2, 2, false));
    expect(counters.device_bytes_written).toBe(sizeOf(offset));
  });
});
