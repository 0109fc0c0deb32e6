/**
 * Reads and writes elements for the reference backend: floats as float64, all others as exact integers. Slow but exact.
 */
import { lastElement } from "../../core/collections.ts";
import { bfloat16ToNumber, numberToBfloat16 } from "../../tensor/bfloat16.ts";
import { type DType, type IntegerDType, integerRange, isComplex, isFloat } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { reserve } from "../../tensor/reserve.ts";
import { broadcastStrides, elementCount, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

interface Strided {
  readonly strides: readonly number[];
  readonly offset: number;
}

/** Visits the elements of a shape in row-major order, with each operand's offset in its storage. */
export function forEachIndex(
  shape: Shape,
  operands: readonly Strided[],
  body: (offsets: readonly number[], index: number) => void,
): void {
  const offsets = operands.map(({ offset }) => offset);
  const steps = operands.map(({ strides }) => plainList(strides));
  const sizes = plainList(shape);
  const places = sizes.map(() => 0);
  const count = elementCount(sizes);
  for (let index = 0; index < count; index++) {
    body(offsets, index);
    for (let axis = sizes.length - 1; axis >= 0; axis--) {
      const isEnd = ++places[axis] === sizes[axis];
      const back = isEnd ? sizes[axis] : 0; // at an axis's end, back to its start
      for (let operand = 0; operand < steps.length; operand++) offsets[operand] += (1 - back) * steps[operand][axis];
      if (!isEnd) break;
      places[axis] = 0;
    }
  }
}

/** Visits the elements of one operand in row-major order, row by row: faster than {@link forEachIndex}. */
export function forEachOffset(shape: Shape, operand: Strided, body: (offset: number, index: number) => void): void {
  if (shape.length === 0) {
    body(operand.offset, 0);
    return;
  }
  const [length, step] = [lastElement(shape), lastElement(operand.strides)];
  const rows = { strides: operand.strides.slice(0, -1), offset: operand.offset };
  forEachIndex(shape.slice(0, -1), [rows], (starts, row) => {
    const start = starts[0];
    for (let at = 0; at < length; at++) body(start + at * step, row * length + at);
  });
}

/** Returns a tensor's elements as float64, row-major, broadcast to `shape`. */
export function toNumbers(tensor: Tensor, shape: Shape = tensor.shape): Float64Array {
  const count = elementCount(shape);
  reserve(count * 8);
  const result = new Float64Array(count);
  const stored = tensor.storage.array(tensor.dtype);
  const decode = tensor.dtype === "bfloat16" ? bfloat16ToNumber : Number;
  const strides = broadcastStrides(tensor.shape, tensor.strides, shape);
  forEachOffset(shape, { strides, offset: tensor.offset }, (at, index) => {
    result[index] = decode(stored[at] as number);
  });
  return result;
}

/** Returns an integer or bool tensor's exact elements, row-major, broadcast to `shape`. */
export function toIntegers(tensor: Tensor, shape: Shape = tensor.shape): bigint[] {
  const count = elementCount(shape);
  reserve(count * 8);
  const result = new Array<bigint>(count);
  const stored = tensor.storage.array(tensor.dtype);
  const strides = broadcastStrides(tensor.shape, tensor.strides, shape);
  forEachOffset(shape, { strides, offset: tensor.offset }, (at, index) => {
    result[index] = BigInt(stored[at]);
  });
  return result;
}

/** Stores row-major values into a tensor, each rounded once to its dtype. */
export function store(tensor: Tensor, values: ArrayLike<number | bigint | boolean>): void {
  const stored = tensor.storage.array(tensor.dtype);
  const encode = encoderOf(tensor.dtype);
  forEachOffset(tensor.shape, tensor, (at, index) => {
    stored[at] = encode(values[index]);
  });
}

type Encoder = (value: number | bigint | boolean) => number | bigint;

/**
 * Returns the conversion of values to elements. Floats round to nearest, ties to even; integers wrap around; floats
 * convert to integers by truncation, saturating out of range and NaN to 0, as on the GPU.
 */
export function encoderOf(dtype: DType): Encoder {
  if (dtype === "bfloat16") return (value) => numberToBfloat16(Number(value));
  if (isFloat(dtype)) return Number;
  if (dtype === "bool") return (value) => (value || Number.isNaN(value) ? 1 : 0);
  if (isComplex(dtype)) throw new TypeError("complex numbers are stored as their parts");
  const wrap = wrapTo(dtype);
  const finish = dtype === "int64" ? (value: bigint) => value : Number;
  return (value) => finish(typeof value === "number" ? saturate(value, dtype) : wrap(BigInt(value)));
}

function saturate(value: number, dtype: IntegerDType): bigint {
  if (Number.isNaN(value)) return 0n;
  const [least, most] = integerRange(dtype);
  if (value <= Number(least)) return least;
  return value >= Number(most) ? most : BigInt(Math.trunc(value));
}

function wrapTo(dtype: DType): (value: bigint) => bigint {
  switch (dtype) {
    case "int64":
      return (value) => BigInt.asIntN(64, value);
    case "int32":
      return (value) => BigInt.asIntN(32, value);
    case "uint32":
      return (value) => BigInt.asUintN(32, value);
    case "int8":
      return (value) => BigInt.asIntN(8, value);
    default:
      return (value) => BigInt.asUintN(8, value);
  }
}
