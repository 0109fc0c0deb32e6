/** Reads a tensor's elements in row-major order, for any strides. */
import { OutOfMemoryError } from "../core/errors.ts";
import { bfloat16ToNumber } from "./bfloat16.ts";
import { type Complex, type DataOf, type DType, dtypeFacts, isComplex, realDType, type StorageArray } from "./dtype.ts";
import { plainList } from "./frozen.ts";
import { noSuchBlock } from "./memory.ts";
import type { Shape } from "./shape.ts";
import type { Tensor } from "./tensor.ts";

/** The part of a tensor that reading needs. */
type Elements<D extends DType = DType> = Pick<
  Tensor<D>,
  "dtype" | "isContiguous" | "offset" | "size" | "storage" | "strides"
> & { readonly shape: Shape };

/** Returns the parts of complex numbers as real elements, with a last axis of size 2. */
const pairsOf = ({ dtype, isContiguous, offset, shape, size, storage, strides }: Elements): Elements => ({
  dtype: realDType(dtype),
  isContiguous,
  offset: 2 * offset,
  shape: [...plainList(shape), 2],
  size: 2 * size,
  storage,
  strides: [...plainList(strides).map((stride) => 2 * stride), 1],
});

/** Copies a tensor's elements. @throws {OutOfMemoryError} */
export function readElements<D extends DType>(operation: string, tensor: Elements<D>): DataOf<D> {
  const { dtype, offset, size } = tensor;
  if (isComplex(dtype)) return readElements(operation, pairsOf(tensor)) as DataOf<D>;
  if (isDense(tensor))
    return withMemory(operation, tensor, () => tensor.storage.array(dtype).slice(offset, offset + size) as DataOf<D>);
  const copy = new ElementCopy<D>(operation, tensor);
  copy.copyNext();
  return copy.result;
}

/** Creates an array for all elements of a tensor. @throws {OutOfMemoryError} if JavaScript can't allocate it */
function withMemory<Made>(operation: string, { dtype, size }: Elements, make: () => Made): Made {
  try {
    return make();
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new OutOfMemoryError(operation, "outOfMemory", noSuchBlock(size * dtypeFacts[dtype].bytes), { cause });
  }
}

/** Whether the stored elements can be copied without conversion. */
const isDense = ({ dtype, isContiguous }: Elements): boolean => isContiguous && dtype !== "bfloat16";

interface Writable {
  [index: number]: number | bigint;
}

/** Copies a tensor's elements in parts. */
export class ElementCopy<D extends DType> {
  /** The copy, complete once {@link copyNext} has returned true. */
  readonly result: DataOf<D>;
  private readonly isDense: boolean;
  private readonly tensor: Elements;
  private done = 0;

  constructor(operation: string, tensor: Elements) {
    this.tensor = isComplex(tensor.dtype) ? pairsOf(tensor) : tensor;
    const { dtype, size } = this.tensor;
    const ArrayOf = dtype === "bfloat16" ? Float32Array : dtypeFacts[dtype].array;
    this.result = withMemory(operation, this.tensor, () => new ArrayOf(size) as DataOf<D>);
    this.isDense = isDense(this.tensor);
  }

  /** The number of elements to copy in about a millisecond. */
  get part(): number {
    return this.isDense ? 2 ** 20 : 2 ** 16;
  }

  /** Copies the next `count` elements, by default all. Returns whether the copy is complete. */
  copyNext(count = Number.POSITIVE_INFINITY): boolean {
    const end = Math.min(this.done + count, this.tensor.size);
    const source = this.tensor.storage.array(this.tensor.dtype);
    if (this.isDense) this.copyDense(source, end);
    else this.copyStrided(source, end);
    this.done = end;
    return end === this.tensor.size;
  }

  private copyDense(source: StorageArray, end: number): void {
    const { offset } = this.tensor;
    const part = source.subarray(offset + this.done, offset + end);
    (this.result as Float32Array).set(part as Float32Array, this.done);
  }

  private copyStrided(source: StorageArray, end: number): void {
    const { offset, dtype } = this.tensor;
    const shape = plainList(this.tensor.shape);
    const strides = plainList(this.tensor.strides);
    const target: Writable = this.result;
    const isBits = dtype === "bfloat16";
    const coordinates = coordinatesOf(this.done, shape);
    let at = coordinates.reduce((sum, index, axis) => sum + index * strides[axis], offset);
    for (let next = this.done; next < end; next++) {
      const stored = source[at];
      target[next] = isBits ? bfloat16ToNumber(stored as number) : stored;
      for (let axis = shape.length - 1; axis >= 0; axis--) {
        at += strides[axis];
        if (++coordinates[axis] < shape[axis]) break;
        at -= shape[axis] * strides[axis];
        coordinates[axis] = 0;
      }
    }
  }
}

/** Returns the coordinates of an element from its row-major index. */
function coordinatesOf(index: number, shape: readonly number[]): number[] {
  const coordinates = new Array<number>(shape.length).fill(0);
  let remainder = index;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = Math.max(shape[axis], 1);
    coordinates[axis] = remainder % size;
    remainder = Math.floor(remainder / size);
  }
  return coordinates;
}

/** Reads one element by its row-major index. */
export function elementAt(tensor: Tensor, index: number): number | bigint | Complex {
  const { shape, strides, offset, dtype } = tensor;
  const at = coordinatesOf(index, shape).reduce((sum, coordinate, axis) => sum + coordinate * strides[axis], offset);
  const elements = tensor.storage.array(dtype);
  if (isComplex(dtype)) return { re: elements[2 * at] as number, im: elements[2 * at + 1] as number };
  return dtype === "bfloat16" ? bfloat16ToNumber(elements[at] as number) : elements[at];
}
