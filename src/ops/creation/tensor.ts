import { allocate } from "../../backend/allocation.ts";
import { captureConstant } from "../../backend/capture.ts";
import { encoderOf } from "../../backend/reference/elements.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { type Kind, named, operand, optional, parameters } from "../../core/parameters.ts";
import {
  bytesOf,
  type Complex,
  type ComplexDType,
  complexDType,
  type DType,
  dtypeOfArray,
  extentOf,
  integerRange,
  isComplex,
  isInteger,
} from "../../tensor/dtype.ts";
import { aScalar, aTypedArray, shapeList } from "../../tensor/kinds.ts";
import { type AllocationHint, BorrowedMemory } from "../../tensor/memory.ts";
import { plainDType, type Scalar } from "../../tensor/promotion.ts";
import { checkRank, checkShape, elementCount, formatShape, type Shape } from "../../tensor/shape.ts";
import { Storage } from "../../tensor/storage.ts";
import { byteLengthOf, type NestedArray, Tensor } from "../../tensor/tensor.ts";
import { creationOptions } from "./create.ts";

/** A typed array whose element type is a dtype. */
export type TensorArray =
  | Float64Array
  | Float32Array
  | Float16Array
  | BigInt64Array
  | Int32Array
  | Uint32Array
  | Int8Array
  | Uint8Array;

interface DTypeByArrayTag {
  Float64Array: "float64";
  Float32Array: "float32";
  Float16Array: "float16";
  BigInt64Array: "int64";
  Int32Array: "int32";
  Uint32Array: "uint32";
  Int8Array: "int8";
  Uint8Array: "uint8";
}

/** The dtype of a typed array's elements. */
export type DTypeOfArray<A extends TensorArray> = DTypeByArrayTag[A[typeof Symbol.toStringTag]];

/** The default dtype of plain values: bool, int64 for bigints, float32 for numbers, complex64 for `{ re, im }`. */
export type DTypeOfValue<V> = V extends Complex
  ? "complex64"
  : V extends boolean
    ? "bool"
    : V extends bigint
      ? "int64"
      : "float32";

/** Options of {@link tensor}: dtype, shape, location of the memory, and whether the tensor requires a gradient. */
export interface TensorOptions<D extends DType = DType> extends AllocationHint {
  /** The dtype. Default: the typed array's dtype; of plain values: bool, int64 for bigints, float32 or complex64. */
  dtype?: D;
  /** The shape. Default: the shape of the nested arrays; `[length]` for a typed array. */
  shape?: Shape;
  /** Whether the tensor requires a gradient: `backward()` then accumulates it in `grad`. */
  requiresGrad?: boolean;
}

type Value = Scalar | Complex;

/**
 * Creates a tensor by copying elements: a number, nested arrays, or a typed array. Complex numbers are objects
 * `{ re, im }`; among them, numbers are real.
 *
 * @example
 * tensor([[1, 2, 3], [4, 5, 6]]); // float32[2, 3]
 * tensor(new Float16Array([1, 2]), { requiresGrad: true }); // float16[2]
 * tensor([1, 2, 255], { dtype: "uint8" });
 * tensor([{ re: 1, im: 2 }, 3]); // complex64 [1+2i, 3+0i]
 *
 * @throws {ShapeError} for ragged arrays, or a shape with a different number of elements.
 * @throws {DTypeError} if the dtype can't hold a value.
 */
export function tensor<A extends TensorArray>(values: A, options?: TensorOptions<never>): Tensor<DTypeOfArray<A>>;
export function tensor<D extends DType>(
  values: NestedArray<Value> | TensorArray,
  options: TensorOptions<D> & { dtype: D },
): Tensor<D>;
export function tensor<V extends Value>(
  values: NestedArray<V>,
  options?: TensorOptions<never>,
): Tensor<DTypeOfValue<V>>;
export function tensor(...given: unknown[]): Tensor {
  const { values, ...options } = tensorParameters(given);
  const { elements, shape: nestedShape } = values;
  const shape = checkShape("tensor", options.shape ?? nestedShape);
  if (elementCount(shape) !== elements.length)
    throw new ShapeError(
      "tensor",
      "sizeDiffers",
      `expected ${elementCount(shape)} elements for shape ${formatShape(shape)}, got ${elements.length}`,
    );
  const dtype = options.dtype ?? dtypeOf(elements);
  const { storage } = options;
  const hint = { label: options.label, storage: "shared" } as const; // shared, because the host writes the elements
  const result = new Tensor(new Storage(allocate(byteLengthOf(shape, dtype), hint, "tensor")), dtype, shape);
  fill(result, elements);
  captureConstant(result);
  result.storage.memory.moveToHint?.(storage);
  if (options.requiresGrad) result.requiresGrad = true;
  return result;
}

/** Elements in row-major order, and their shape. */
interface Elements {
  readonly elements: ArrayLike<Value>;
  readonly shape: Shape;
}

const values: Kind<Elements> = {
  expected: "a number, a bigint, a boolean, nested arrays of them, or a typed array",
  parse(value, operation, name) {
    const array = aTypedArray.parse(value, operation, name);
    if (array) return { elements: array, shape: [array.length] };
    return Array.isArray(value) || isComplexNumber(value) || aScalar.parse(value, operation, name) !== undefined
      ? flatten(value as NestedArray<Value>)
      : undefined;
  },
};
const tensorParameters = parameters("tensor", {
  values: operand(values),
  shape: named(shapeList),
  ...creationOptions,
});

/**
 * Creates a tensor that shares the memory of a typed array, without a copy: changes to one are visible in the other. (A
 * backend that can't access JavaScript's memory copies it on first use; from then on the two are independent.)
 *
 * The array must not change while a backward pass still needs it; if it does, `backward()` throws. To detect this,
 * elements that an operation saves for its gradient are hashed, once in the forward and once in the backward pass.
 * {@link tensor} copies the array instead, and its elements are not hashed. After the array's buffer is transferred or
 * shrunk, every use of the tensor throws.
 *
 * @param shape default `[array.length]`
 *
 * @example
 * fromArray(new Int32Array([1, 2, 3, 4]), [2, 2]); // int32 [[1, 2], [3, 4]]
 *
 * @throws {ShapeError} if the number of elements differs.
 * @throws {DTypeError} for an array whose element type is not a dtype.
 * @throws {ArgumentError} `sharedBuffer` for a SharedArrayBuffer, `detached` for a buffer that was transferred.
 */
export function fromArray<A extends TensorArray>(array: A, shape?: Shape): Tensor<DTypeOfArray<A>>;
export function fromArray(...given: unknown[]): Tensor {
  const { array, shape: sizes } = fromArrayParameters(given);
  const dtype = dtypeOfArray(array);
  if (dtype === undefined)
    throw new DTypeError(
      "fromArray",
      "unknownArray",
      `expected a typed array with elements of a dtype, got ${describeValue(array)}`,
    );
  const { buffer, byteOffset, byteLength } = extentOf(array);
  const length = byteLength / bytesOf(dtype);
  checkBuffer(buffer);
  const shape = checkShape("fromArray", sizes ?? [length]);
  if (elementCount(shape) !== length)
    throw new ShapeError(
      "fromArray",
      "sizeDiffers",
      `expected ${elementCount(shape)} elements for shape ${formatShape(shape)}, got ${length}`,
    );
  return new Tensor(
    new Storage(new BorrowedMemory({ buffer: buffer as ArrayBuffer, byteOffset, byteLength })),
    dtype,
    shape,
    undefined,
    byteOffset / bytesOf(dtype),
  );
}

/** @throws {ArgumentError} for memory that this thread does not own exclusively. */
function checkBuffer(buffer: ArrayBufferLike): void {
  if (!(buffer instanceof ArrayBuffer))
    throw new ArgumentError(
      "fromArray",
      "sharedBuffer",
      "expected an array over an ArrayBuffer, got one over a SharedArrayBuffer, which other threads may change while " +
        "an operation reads it; tensor(array) copies it",
    );
  if (buffer.detached)
    throw new ArgumentError(
      "fromArray",
      "detached",
      "expected an array with an attached buffer, got one whose buffer was transferred",
    );
}
const fromArrayParameters = parameters("fromArray", { array: operand(aTypedArray), shape: optional(shapeList) });

function dtypeOf(elements: ArrayLike<Value>): DType {
  if (ArrayBuffer.isView(elements)) {
    const dtype = dtypeOfArray(elements);
    if (dtype) return dtype;
    throw new DTypeError(
      "tensor",
      "unknownArray",
      `expected a typed array with elements of a dtype, got ${describeValue(elements)}; pass { dtype }`,
    );
  }
  const numbers = elements as readonly Value[];
  return numbers.some(isComplexNumber) ? "complex64" : plainDType(numbers as readonly Scalar[]);
}

function flatten(values: NestedArray<Value>): { elements: Value[]; shape: number[] } {
  const shape: number[] = [];
  for (let level = values; Array.isArray(level); level = level[0]) {
    shape.push(level.length);
    checkRank("tensor", shape); // stops at an array that contains itself
  }
  const elements: Value[] = [];
  const visit = (value: NestedArray<Value>, axis: number): void => {
    if (Array.isArray(value) ? value.length !== shape[axis] : axis !== shape.length) throw ragged(value, axis, shape);
    if (Array.isArray(value)) for (const item of value) visit(item, axis + 1);
    else elements.push(checkValue(value));
  };
  visit(values, 0);
  return { elements, shape };
}

function ragged(value: NestedArray<Value>, axis: number, shape: Shape): ShapeError {
  const got = Array.isArray(value) ? `an array of ${value.length}` : "a single value";
  const expected = axis < shape.length ? `an array of ${shape[axis]}` : "a single value";
  return new ShapeError(
    "tensor",
    "ragged",
    `expected rectangular nested arrays, with ${expected} at depth ${axis}, got ${got}`,
  );
}

function checkValue(value: unknown): Value {
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return value;
  if (isComplexNumber(value)) return { re: value.re, im: value.im };
  throw new ArgumentError(
    "tensor",
    "invalidElement",
    `expected elements to be numbers, bigints, booleans or complex numbers { re, im }, got ${describeValue(value)}`,
  );
}

function fill(target: Tensor, elements: ArrayLike<Value>): void {
  const stored = target.storage.array(target.dtype);
  if (ArrayBuffer.isView(elements) && dtypeOfArray(elements) === target.dtype) {
    (stored as Float32Array).set(elements as Float32Array);
    return;
  }
  if (isComplex(target.dtype)) {
    fillPairs(stored as Float32Array | Float64Array, elements);
    return;
  }
  checkFit(target.dtype, elements);
  const encode = encoderOf(target.dtype);
  const writable = stored;
  for (let index = 0; index < elements.length; index++)
    writable[index] = encode(realValue(elements[index], target.dtype, index));
}

function realValue(value: Value, dtype: DType, index: number): Scalar {
  if (typeof value !== "object") return value;
  throw new DTypeError("tensor", "doesNotFit", `expected real numbers for ${dtype}, got a complex one at [${index}]`);
}

/** Writes complex numbers as pairs; a number is a real part. */
function fillPairs(stored: Float32Array | Float64Array, elements: ArrayLike<Value>): void {
  for (let index = 0; index < elements.length; index++) {
    const value = elements[index];
    const [re, im] = typeof value === "object" ? [value.re, value.im] : [Number(value), 0];
    stored[2 * index] = re;
    stored[2 * index + 1] = im;
  }
}

/** @internal Creates a complex tensor from an array of pairs: real part, imaginary part. */
export function fromPairs(pairs: Float32Array | Float64Array, shape: Shape): Tensor<ComplexDType> {
  const { storage, dtype } = tensor(pairs as Float32Array);
  return new Tensor(storage, complexDType(dtype), shape);
}

/** @internal Tests whether a value is a complex number `{ re, im }`. */
export const isComplexNumber = (value: unknown): value is Complex =>
  typeof value === "object" &&
  value !== null &&
  "re" in value &&
  "im" in value &&
  typeof value.re === "number" &&
  typeof value.im === "number";

/** Checks that values for an integer dtype are whole numbers in its range, so that values do not change silently. */
function checkFit(dtype: DType, elements: ArrayLike<Value>): void {
  if (!isInteger(dtype)) return;
  const [least, most] = integerRange(dtype);
  for (let index = 0; index < elements.length; index++) {
    const value = elements[index];
    const fits =
      typeof value === "boolean" ||
      typeof value === "object" || // an invalid value is rejected when it is stored
      ((typeof value === "bigint" || Number.isInteger(value)) && value >= least && value <= most);
    if (fits) continue;
    throw new DTypeError(
      "tensor",
      "doesNotFit",
      `expected whole numbers from ${least} to ${most} for ${dtype}, got ${value} at [${index}]`,
    );
  }
}
