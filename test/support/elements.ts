/** Elements of every dtype as JavaScript values, written and read without the code under test. */
import type { RealDType } from "../../src/tensor/dtype.ts";

export interface ElementType {
  /** Memory that native code can access. */
  readonly make: (count: number) => NodeJS.TypedArray;
  readonly write: (storage: NodeJS.TypedArray, index: number, value: number | bigint) => void;
  /** A bigint for integers. */
  readonly read: (storage: NodeJS.TypedArray, index: number) => number | bigint;
  /** For floats: half the distance from 1 to the next number, the largest relative error of one rounding. */
  readonly rounding?: number;
  /** Integers whose sums wrap around. */
  readonly wrap?: (value: bigint) => bigint;
}

type Numbers = { [index: number]: number };
type NumberArray = NodeJS.TypedArray & Numbers;

const numbers = (make: (count: number) => NodeJS.TypedArray) => ({
  make,
  write: (storage: NodeJS.TypedArray, index: number, value: number | bigint) => {
    (storage as NumberArray)[index] = Number(value);
  },
});
const float = (make: (count: number) => NodeJS.TypedArray, rounding: number): ElementType => ({
  ...numbers(make),
  read: (storage, index) => (storage as NumberArray)[index],
  rounding,
});
const integer = (make: (count: number) => NodeJS.TypedArray, wrap: (value: bigint) => bigint): ElementType => ({
  ...numbers(make),
  read: (storage, index) => BigInt((storage as NumberArray)[index]),
  wrap,
});

/** Two-byte floats are in a Uint16Array; `view` has their values. */
function view16(storage: NodeJS.TypedArray): Float16Array {
  const known = views16.get(storage) ?? new Float16Array(storage.buffer, storage.byteOffset, storage.length);
  views16.set(storage, known);
  return known;
}
const views16 = new WeakMap<NodeJS.TypedArray, Float16Array>();
const widened = new Float32Array(1);
const widenedBits = new Uint32Array(widened.buffer);

export const elementTypes: Record<Exclude<RealDType, "bool">, ElementType> = {
  float64: float((count) => new Float64Array(count), 2 ** -53),
  float32: float((count) => new Float32Array(count), 2 ** -24),
  float16: {
    make: (count) => new Uint16Array(count),
    write: (storage, index, value) => {
      view16(storage)[index] = Number(value);
    },
    read: (storage, index) => view16(storage)[index],
    rounding: 2 ** -11,
  },
  bfloat16: {
    make: (count) => new Uint16Array(count),
    write: (storage, index, value) => {
      widened[0] = Number(value);
      (storage as NumberArray)[index] = widenedBits[0] >>> 16; // truncates; test data need not be the nearest value
    },
    read: (storage, index) => {
      widenedBits[0] = ((storage as NumberArray)[index] << 16) >>> 0;
      return widened[0];
    },
    rounding: 2 ** -8,
  },
  int64: {
    make: (count) => new BigInt64Array(count),
    write: (storage, index, value) => {
      (storage as BigInt64Array)[index] = BigInt(value);
    },
    read: (storage, index) => (storage as BigInt64Array)[index],
    wrap: (value) => BigInt.asIntN(64, value),
  },
  int32: integer(
    (count) => new Int32Array(count),
    (value) => BigInt.asIntN(32, value),
  ),
  uint32: integer(
    (count) => new Uint32Array(count),
    (value) => BigInt.asUintN(32, value),
  ),
  int8: integer(
    (count) => new Int8Array(count),
    (value) => BigInt.asIntN(8, value),
  ),
  uint8: integer(
    (count) => new Uint8Array(count),
    (value) => BigInt.asUintN(8, value),
  ),
};
