/**
 * Operands for tests of operations: values of a seeded generator, in memory of every layout, padded with large values.
 */

import { empty } from "../../src/backend/allocation.ts";
import { withBackend } from "../../src/backend/policy.ts";
import { encoderOf } from "../../src/backend/reference/elements.ts";
import { type DType, isFloat } from "../../src/tensor/dtype.ts";
import { elementCount, type Shape } from "../../src/tensor/shape.ts";
import { Tensor } from "../../src/tensor/tensor.ts";

/** The layout of an operand's elements in its storage. */
export type Layout = "contiguous" | "offset" | "transposed" | "strided" | "reversed" | "expanded";
export const layouts: readonly Layout[] = ["contiguous", "offset", "transposed", "strided", "reversed", "expanded"];

/** The source of values: a uniform range, whole numbers of a range, or a list that repeats. */
export type Values =
  | { readonly low: number; readonly high: number }
  | { readonly integers: readonly [number, number] }
  | { readonly list: readonly number[] };

export interface OperandSpec {
  readonly shape: Shape;
  /** Default contiguous. */
  readonly layout?: Layout;
  /** Default: −2 to 2, or whole numbers from −5 to 5 (0 to 9 where unsigned). */
  readonly values?: Values;
  /** Default: the dtype of the test. */
  readonly dtype?: DType;
}

/** Values for the oracle: row-major, exact. */
export interface Block {
  readonly shape: Shape;
  readonly dtype: DType;
  readonly values: number[];
}

export class Random {
  constructor(private state: number) {}

  /** Uniform in [0, 1): mulberry32. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  integer(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }
}

/** Row-major values of an operand, rounded to its dtype. */
export function makeBlock({ shape, values, dtype: own }: OperandSpec, dtype: DType, random: Random): Block {
  const kind = own ?? dtype;
  const round = rounder(kind);
  const from = values ?? defaultValues(kind);
  const made = new Array<number>(elementCount(shape)); // Array.from with a function takes several times as long
  for (let index = 0; index < made.length; index++) made[index] = round(draw(from, index, random));
  return { shape, dtype: kind, values: made };
}

function defaultValues(dtype: DType): Values {
  if (isFloat(dtype)) return { low: -2, high: 2 };
  if (dtype === "bool") return { integers: [0, 1] };
  return { integers: dtype.startsWith("u") ? [0, 9] : [-5, 5] };
}

function draw(values: Values, index: number, random: Random): number {
  if ("list" in values) return values.list[index % values.list.length];
  if ("integers" in values) return random.integer(...values.integers);
  return values.low + random.next() * (values.high - values.low);
}

/** Rounds a number to what a dtype can hold. */
export function rounder(dtype: DType): (value: number) => number {
  if (dtype === "float64") return (value) => value;
  if (dtype === "float32") return Math.fround;
  if (dtype === "float16") return Math.f16round;
  const encode = encoderOf(dtype);
  if (dtype === "bfloat16") return (value) => widen(Number(encode(value)));
  return (value) => Number(encode(value));
}

const wide = new Float32Array(1);
const wideBits = new Uint32Array(wide.buffer);

function widen(bits: number): number {
  wideBits[0] = bits << 16;
  return wide[0];
}

const LOUD = 31; // elements of padding on each side
const PADDINGS = 61; // the number of different padding values, a prime, so that rows differ

/**
 * A tensor of the block's values in a layout, inside a larger storage whose other elements are large: an access beyond
 * the view changes the result. `expanded` repeats along the first axis, so it keeps only the block's first row there
 * (see {@link expandedBlock}).
 */
export function place(block: Block, layout: Layout, backend: "metal" | "cpu" | "reference", random: Random): Tensor {
  const { shape, dtype, values } = block;
  const { strides, start, room } = arrange(shape, layout);
  return withBackend(backend, () => {
    const whole = empty([room + 2 * LOUD], dtype);
    const stored = whole.storage.array(dtype) as { [index: number]: number | bigint };
    const encode = encoderOf(dtype);
    const padding = Array.from({ length: PADDINGS }, () => encode(loud(dtype, random)));
    for (let index = 0; index < room + 2 * LOUD; index++) stored[index] = padding[index % PADDINGS];
    const view = new Tensor(whole.storage, dtype, shape, strides, LOUD + start);
    forEachPlace(shape, strides, LOUD + start, (at, index) => {
      stored[at] = encode(dtype === "int64" ? BigInt(values[index]) : values[index]);
    });
    whole.dispose();
    return view;
  });
}

/** Padding that would be noticed: far from all test values, different each time. */
function loud(dtype: DType, random: Random): number {
  if (isFloat(dtype)) return random.next() < 0.2 ? Number.NaN : (random.next() - 0.5) * 6e4;
  return dtype === "bool" ? random.integer(0, 1) : random.integer(50, 120);
}

/** The block of an expanded operand: the first row of axis 0 everywhere. */
export function expandedBlock(block: Block): Block {
  const [first = 1] = block.shape;
  const row = block.values.length / Math.max(first, 1);
  return { ...block, values: block.values.map((_, index) => block.values[index % row]) };
}

function arrange(shape: Shape, layout: Layout): { strides: number[]; start: number; room: number } {
  const order = shape.map((_, axis) => axis);
  if (layout === "transposed") order.reverse();
  const gap = layout === "strided" ? 3 : 1;
  const strides = new Array<number>(shape.length).fill(0);
  let room = gap;
  for (const axis of order.reverse()) {
    strides[axis] = room;
    room *= Math.max(shape[axis], 1);
    if (layout === "strided") room += 2;
  }
  if (layout === "reversed") {
    const start = strides.reduce((sum, stride, axis) => sum + stride * Math.max(shape[axis] - 1, 0), 0);
    return { strides: strides.map((stride) => -stride), start, room };
  }
  if (layout === "expanded" && shape.length > 0) strides[0] = 0;
  return { strides, start: layout === "offset" ? 9 : 0, room: room + 9 }; // LOUD + 9 is a multiple of 8
}

function forEachPlace(
  shape: Shape,
  strides: readonly number[],
  start: number,
  body: (at: number, index: number) => void,
): void {
  let index = 0;
  const level = (axis: number, at: number): void => {
    const size = shape[axis];
    const stride = strides[axis] ?? 0;
    if (size === undefined) body(at, index++);
    else if (axis === shape.length - 1) for (let step = 0; step < size; step++) body(at + step * stride, index++);
    else for (let step = 0; step < size; step++) level(axis + 1, at + step * stride);
  };
  level(0, start);
}

/** The seed for a text. */
export function hash(text: string): number {
  let state = 2166136261;
  for (let index = 0; index < text.length; index++) state = Math.imul(state ^ text.charCodeAt(index), 16777619);
  return state >>> 0;
}
