/**
 * Copies between operands of any strides, on every instruction set, for elements of every size, compared with
 * coordinates that are counted one by one. Memory around the result's elements must not change.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { copyCall } from "../../../src/ops/copy/primitive.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";

const { native } = cpuLibrary();
const { isa: initial, isas, threads } = cpuInfo(native);
afterAll(() => {
  configure(native, "isa", initial);
  configure(native, "threads", String(threads));
});

const elements = [
  ["uint8", Uint8Array],
  ["bfloat16", Uint16Array],
  ["uint32", Uint32Array],
  ["float64", Float64Array],
] as const;

/** Axes of one copy: the sizes, and both operands' strides, in elements. */
interface Copy {
  readonly shape: readonly number[];
  readonly from: readonly number[];
  readonly to: readonly number[];
}

/** Row-major strides of these sizes, with a few elements of padding after each row of the last axis. */
function stridesOf(shape: readonly number[], more = 0, step = 1): number[] {
  let next = step;
  return shape
    .map((size, axis) => [size, axis] as const)
    .reverse()
    .map(([size, axis]) => {
      const own = next;
      next = own * size + (axis === shape.length - 1 ? more : 0);
      return own;
    })
    .reverse();
}

const permuted = <Item>(items: readonly Item[], order: readonly number[]): Item[] => order.map((axis) => items[axis]!);

/** Copies a permuted operand into a row-major result. */
const permute = (shape: readonly number[], order: readonly number[], more = 0, step = 1): Copy => ({
  shape: permuted(shape, order),
  from: permuted(stridesOf(shape, more, step), order),
  to: stridesOf(permuted(shape, order)),
});

/** Swaps the operands. */
const swapped = ({ shape, from, to }: Copy): Copy => ({ shape, from: to, to: from });

const reversed = ({ shape, from, to }: Copy): Copy => ({ shape, from: from.map((stride) => -stride), to });

/** Copies each element of a matrix, repeated along a third axis, into a part of a larger tensor. */
const fillRows = (width: number): Copy => ({
  shape: [7, 9, width],
  from: [11, 1, 0],
  to: [10 * (width + 4), width + 4, 1],
});

function offsets({ shape }: Copy, strides: readonly number[]): Int32Array {
  const count = shape.reduce((product, size) => product * size, 1);
  const found = new Int32Array(count);
  for (let index = 0; index < count; index++)
    for (let axis = shape.length - 1, left = index; axis >= 0; axis--) {
      found[index] += (left % shape[axis]) * strides[axis];
      left = Math.floor(left / shape[axis]);
    }
  return found;
}

const AROUND = 3;

function check(copy: Copy, [dtype, Elements]: (typeof elements)[number]): void {
  const [from, to] = [offsets(copy, copy.from), offsets(copy, copy.to)];
  const starts = [from, to].map((list) => AROUND - list.reduce((least, own) => Math.min(least, own), 0));
  const lengths = [from, to].map(
    (list, at) => starts[at] + list.reduce((most, own) => Math.max(most, own), 0) + 1 + AROUND,
  );
  const source = new Elements(lengths[0]);
  for (let i = 0; i < source.length; i++) source[i] = 1 + ((i * 31 + (i >> 7) * 17 + (i >> 14) * 5) % 251);
  const target = new Elements(lengths[1]);
  const operands = [copy.from, copy.to].map((strides, at) => ({ shape: copy.shape, strides, offset: starts[at] }));
  copyCall("copy", { from: dtype, to: dtype, loop: operands as unknown as Tensor[] }, [source, target]);
  const expected = new Elements(lengths[1]);
  for (let i = 0; i < to.length; i++) expected[starts[1] + to[i]] = source[starts[0] + from[i]];
  expect(Buffer.compare(new Uint8Array(target.buffer), new Uint8Array(expected.buffer))).toBe(0);
}

const sides = [1, 2, 3, 4, 5, 16, 31, 65, 129];
const copies: readonly (readonly [string, Copy])[] = [
  ...sides.flatMap((rows) =>
    sides.map((columns) => [`${rows} by ${columns}, transposed`, permute([rows, columns], [1, 0])] as const),
  ),
  ["transposed, from rows with a gap", permute([130, 67], [1, 0], 5)],
  ["transposed, to rows with a gap", swapped(permute([130, 67], [1, 0], 5))],
  ["transposed, every second element", permute([70, 45], [1, 0], 0, 2)],
  ["transposed to every second element", swapped(permute([70, 45], [1, 0], 0, 2))],
  ["transposed, backwards", reversed(permute([70, 45], [1, 0]))],
  ["channels to the end", permute([2, 3, 9, 11], [0, 2, 3, 1])],
  ["channels from the end", permute([2, 9, 11, 3], [0, 3, 1, 2])],
  ["many channels to the end", permute([2, 70, 9, 11], [0, 2, 3, 1])],
  ["five pixels", permute([5, 3], [1, 0], 2)],
  ["heads", permute([2, 33, 5, 24], [0, 2, 1, 3])],
  ["keys", permute([2, 3, 40, 24], [0, 1, 3, 2])],
  ["all axes the other way round", permute([3, 4, 5, 6, 7], [4, 3, 2, 1, 0])],
  ...[1, 2, 3, 5, 7, 9, 15, 16, 17, 33, 300].map(
    (width) => [`rows of ${width}`, { ...permute([50, width], [0, 1], 3) }] as const,
  ),
  ["from rows to rows with gaps", { shape: [20, 30], from: [37, 1], to: [41, 1] }],
  ["from adjacent rows to rows with gaps", { shape: [20, 30], from: [30, 1], to: [41, 1] }],
  ["both transposed", { shape: [20, 30], from: [1, 37], to: [1, 41] }],
  ["repeated rows", { shape: [20, 30], from: [0, 1], to: [30, 1] }],
  ["repeated elements", { shape: [20, 30], from: [1, 0], to: [30, 1] }],
  ...[2, 3, 8, 63, 64, 127, 128, 129, 513].map(
    (width) => [`an element ${width} times, in rows with gaps`, fillRows(width)] as const,
  ),
  ["repeated elements, transposed", { shape: [20, 30, 40], from: [0, 1, 30], to: [1200, 40, 1] }],
  ["one element", { shape: [1, 1], from: [7, 3], to: [1, 1] }],
  ["no axes", { shape: [], from: [], to: [] }],
  ["one row", { shape: [100_000], from: [1], to: [1] }],
];

describe.each(isas)("copies of tensors on %s", (isa) => {
  test.each(copies)("copies of %s have the elements of the source", (_, copy) => {
    configure(native, "isa", isa);
    for (const each of elements) check(copy, each);
  });

  test.each([
    ["rows of whole lines", [2048, 2064]],
    ["rows that end within a line", [2049, 2053]],
  ] as const)("copies larger than the caches have the elements of the source: %s", (_, [rows, columns]) => {
    configure(native, "isa", isa);
    configure(native, "threads", "2");
    const source = new Uint32Array(rows * columns).map((_, index) => index);
    const bytes = new ArrayBuffer(4 * rows * columns + 64);
    const target = new Uint32Array(bytes, 0, rows * columns);
    for (const [dense, strides] of [
      [true, [columns, 1]],
      [false, [1, columns]],
    ] as const) {
      const shape = dense ? [rows, columns] : [columns, rows];
      const result = { shape, strides: [shape[1], 1], offset: 0 };
      const loop = [{ shape, strides, offset: 0 }, result] as unknown as Tensor[];
      copyCall("copy", { from: "uint32", to: "uint32", loop }, [source, target]);
      const wrong = target.findIndex((value, index) => {
        const [row, column] = [Math.floor(index / shape[1]), index % shape[1]];
        return value !== row * strides[0] + column * strides[1];
      });
      expect(wrong).toBe(-1);
      expect(new Uint32Array(bytes, 4 * rows * columns).every((value) => value === 0)).toBe(true);
      target.fill(0);
    }
  });
});
