/**
 * Drawn matrix products of the cpu backend, computed in every way, compared with sums in float64 or exact integers.
 * Large values surround the operands, so that a read outside of them changes the result.
 */
import { expect } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../src/backend/cpu/report.ts";
import { type MatmulCase, type MatmulOperand, multiply } from "./cpu-matmul.ts";
import { type ElementType, elementTypes } from "./elements.ts";

const { native } = cpuLibrary();
const { isa: initial, isas, blas } = cpuInfo(native);
export const useDefaults = (): void => {
  configure(native, "isa", initial);
  configure(native, "products", "table");
};
export type Dtype = keyof typeof elementTypes;
export const floats: Dtype[] = ["float64", "float32", "float16", "bfloat16"];
export const integers: Dtype[] = ["int64", "int32", "uint32", "int8", "uint8"];

/** Ways to compute: the BLAS if there is one, as on macOS, and the backend's code on each instruction set. */
export const ways = [
  ...(blas ? [{ name: blas.name, isa: initial, products: "blas" }] : []),
  ...isas.map((isa) => ({ name: isa, isa, products: "own" })),
];
export const use = (way: { isa: string; products: string }): void => {
  configure(native, "isa", way.isa);
  configure(native, "products", way.products);
};

/** Layouts of rows and columns: strides as multiples, and whether the first element is the last in memory. */
const layouts = {
  rows: (rows: number, columns: number) => ({ rowStride: columns, columnStride: 1, length: rows * columns }),
  columns: (rows: number, columns: number) => ({ rowStride: 1, columnStride: rows, length: rows * columns }),
  gaps: (rows: number, columns: number) => ({ rowStride: columns + 3, columnStride: 1, length: rows * (columns + 3) }),
  strided: (rows: number, columns: number) => ({ rowStride: 3 * columns, columnStride: 3, length: 3 * rows * columns }),
  reversed: (rows: number, columns: number) => ({ rowStride: -columns, columnStride: -1, length: rows * columns }),
  upsideDown: (rows: number, columns: number) => ({ rowStride: -columns, columnStride: 1, length: rows * columns }),
  oneRow: (_: number, columns: number) => ({ rowStride: 0, columnStride: 1, length: columns }),
  oneColumn: (rows: number, _: number) => ({ rowStride: 1, columnStride: 0, length: rows }),
  oneElement: () => ({ rowStride: 0, columnStride: 0, length: 1 }),
} as const;
export type Layout = keyof typeof layouts;

let seed = 1;
/** Uniform on [0, 1): a linear congruence that needs no library. */
export function random(): number {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
}

const padding = 19;

/** A batch of matrices of random numbers in a separate storage, with large values before, between and after them. */
export function randomOperand(
  type: ElementType,
  rows: number,
  columns: number,
  layout: Layout,
  batchShape: readonly number[],
  isRepeated = false,
): MatmulOperand {
  const { rowStride, columnStride, length } = layouts[layout](rows, columns);
  const step = length + padding;
  const batchStrides = batchShape.map((_, axis) => (isRepeated ? 0 : step * product(batchShape.slice(axis + 1))));
  const count = padding + step * (isRepeated ? 1 : product(batchShape));
  const storage = type.make(count);
  for (let index = 0; index < count; index++) type.write(storage, index, loud(type));
  const first = Math.min(0, rowStride * (rows - 1)) + Math.min(0, columnStride * (columns - 1));
  const operand = { storage, offset: padding - first, rowStride, columnStride, batchStrides };
  forEachElement(operand, rows, columns, batchShape, (index) => type.write(storage, index, quiet(type)));
  return operand;
}

const product = (sizes: readonly number[]) => sizes.reduce((total, size) => total * size, 1);
const loud = ({ wrap }: ElementType) => (wrap ? wrap(0x5a5a5a5a5a5a5a5an) : Number.NaN);
const quiet = ({ wrap }: ElementType) =>
  wrap
    ? wrap((BigInt(Math.floor(random() * 2 ** 32)) << 32n) | BigInt(Math.floor(random() * 2 ** 32)))
    : random() * 2 - 1;

function forEachElement(
  operand: MatmulOperand,
  rows: number,
  columns: number,
  batchShape: readonly number[],
  visit: (index: number, row: number, column: number, base: readonly number[]) => void,
): void {
  const walk = (axis: number, offset: number, place: readonly number[]) => {
    if (axis < batchShape.length) {
      for (let index = 0; index < batchShape[axis]; index++)
        walk(axis + 1, offset + index * operand.batchStrides[axis], [...place, index]);
      return;
    }
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++)
        visit(offset + row * operand.rowStride + column * operand.columnStride, row, column, place);
  };
  walk(0, operand.offset, []);
}

const baseOf = (operand: MatmulOperand, place: readonly number[]) =>
  place.reduce((offset, index, axis) => offset + index * operand.batchStrides[axis], operand.offset);

export interface Case extends MatmulCase {
  readonly dtype: Dtype;
}

export interface Expected {
  /** The expected values, by the element's index in the storage of the result. */
  readonly value: readonly (number | bigint | undefined)[];
  /** The largest error that floats may have at that element. */
  readonly bound: Float64Array;
}

/** The places of matrices in a batch. */
const placesOf = (batchShape: readonly number[]): readonly (readonly number[])[] =>
  batchShape.reduce<number[][]>(
    (places, size) => places.flatMap((place) => Array.from({ length: size }, (_, index) => [...place, index])),
    [[]],
  );

/** The elements of a matrix, row by row. Sums modulo 2^32 need no more than 32 bits of a shorter integer. */
function elementsOf(dtype: Dtype, operand: MatmulOperand, rows: number, columns: number, place: readonly number[]) {
  const { read, wrap } = elementTypes[dtype];
  const count = rows * columns;
  const base = baseOf(operand, place);
  const indexOf = (at: number) =>
    base + Math.floor(at / columns) * operand.rowStride + (at % columns) * operand.columnStride;
  if (wrap === undefined) {
    const values = new Float64Array(count);
    for (let at = 0; at < count; at++) values[at] = Number(read(operand.storage, indexOf(at)));
    return values;
  }
  const values = dtype === "int64" ? new BigInt64Array(count) : new Int32Array(count);
  for (let at = 0; at < count; at++) {
    const value = read(operand.storage, indexOf(at)) as bigint;
    values[at] = dtype === "int64" ? value : Number(BigInt.asIntN(32, value));
  }
  return values;
}

/** Returns the sum of `count` products, exactly or modulo 2^32, and for floats also the sum of absolute values. */
function dot(x: Float64Array | Int32Array | BigInt64Array, from: number, y: typeof x, start: number, count: number) {
  if (x instanceof BigInt64Array || y instanceof BigInt64Array) {
    let whole = 0n;
    for (let p = 0; p < count; p++) whole += (x[from + p] as bigint) * (y[start + p] as bigint);
    return { sum: whole, size: 0 };
  }
  return x instanceof Int32Array
    ? dotOfIntegers(x, from, y as Int32Array, start, count)
    : dotOfFloats(x, from, y as Float64Array, start, count);
}

function dotOfIntegers(x: Int32Array, from: number, y: Int32Array, start: number, count: number) {
  let sum = 0;
  for (let p = 0; p < count; p++) sum = (sum + Math.imul(x[from + p], y[start + p])) | 0;
  return { sum, size: 0 };
}

function dotOfFloats(x: Float64Array, from: number, y: Float64Array, start: number, count: number) {
  let [sum, size] = [0, 0];
  for (let p = 0; p < count; p++) {
    const term = x[from + p] * y[start + p];
    sum += term;
    size += Math.abs(term);
  }
  return { sum, size };
}

/**
 * The formula, in float64 or exactly, with the classical bound for a sum of k products: (k + 2) u Σ|a||b|, and one
 * rounding.
 */
export function formula({ dtype, m, n, k, batchShape, a, b, out, input, alpha = 1, beta = 1 }: Case): Expected {
  const type = elementTypes[dtype];
  const value: (number | bigint | undefined)[] = Array.from({ length: out.storage.length });
  const bound = new Float64Array(out.storage.length);
  const summed = Math.min(type.rounding ?? 0, 2 ** -24);
  const columnsOfB = { ...b, rowStride: b.columnStride, columnStride: b.rowStride };
  for (const place of placesOf(batchShape)) {
    const [left, right] = [elementsOf(dtype, a, m, k, place), elementsOf(dtype, columnsOfB, n, k, place)];
    const [base, inputBase] = [baseOf(out, place), input === undefined ? 0 : baseOf(input, place)];
    for (let row = 0; row < m; row++)
      for (let column = 0; column < n; column++) {
        const index = base + row * out.rowStride + column * out.columnStride;
        const { sum, size } = dot(left, row * k, right, column * k, k);
        const added =
          input !== undefined && beta !== 0
            ? type.read(input.storage, inputBase + row * input.rowStride + column * input.columnStride)
            : 0;
        if (type.wrap) {
          value[index] = type.wrap(BigInt(alpha) * BigInt(sum) + BigInt(beta) * BigInt(added));
          continue;
        }
        const whole = alpha * Number(sum) + beta * Number(added);
        value[index] = whole;
        const magnitude = Math.abs(alpha) * size + Math.abs(beta * Number(added));
        const smallest = dtype === "float16" ? 2 ** -25 : 0;
        bound[index] = (k + 4) * summed * magnitude + type.rounding! * Math.abs(whole) * 1.01 + smallest;
      }
  }
  return { value, bound };
}

/** Computes into a copy of the result's storage, and returns the first mistake, or undefined. */
export function firstWrong(given: Case, expected: Expected): string | undefined {
  const type = elementTypes[given.dtype];
  const storage = given.out.storage.slice();
  const before = storage.slice();
  const isOut = (operand?: MatmulOperand) =>
    operand && (operand.storage === given.out.storage ? { ...operand, storage } : operand);
  multiply({ ...given, out: { ...given.out, storage }, input: isOut(given.input) });
  for (let index = 0; index < storage.length; index++) {
    const got = type.read(storage, index);
    const value = expected.value[index];
    if (value === undefined) {
      if (!Object.is(got, type.read(before, index))) return `element ${index} outside of the result became ${got}`;
    } else if (typeof got === "bigint" ? got !== value : !(Math.abs(got - Number(value)) <= expected.bound[index])) {
      return `element ${index} is ${got}, expected ${value} ± ${expected.bound[index]}`;
    }
  }
  return undefined;
}

/** Runs a case in every way; the formula is computed once. */
export function expectRight(given: Case, description: string): void {
  const expected = formula(given);
  for (const way of ways) {
    use(way);
    expect([description, way.name, firstWrong(given, expected)]).toEqual([description, way.name, undefined]);
  }
}

export function randomCase(
  dtype: Dtype,
  [m, n, k]: readonly [number, number, number],
  [la, lb, lo]: readonly [Layout, Layout, Layout],
  batchShape: readonly number[] = [],
  repeated: { a?: boolean; b?: boolean } = {},
): Case {
  const type = elementTypes[dtype];
  const a = randomOperand(type, m, k, la, batchShape, repeated.a);
  const b = randomOperand(type, k, n, lb, batchShape, repeated.b);
  const out = randomOperand(type, m, n, lo, batchShape);
  return { dtype, m, n, k, batchShape, a, b, out };
}

export const operandLayouts = Object.keys(layouts) as Layout[];
export const resultLayouts = ["rows", "columns", "gaps", "strided", "reversed", "upsideDown"] as const;

/** Returns the next item, in turn. */
export const nth = <Item>(items: readonly Item[], index: number): Item => items[index % items.length]!;
