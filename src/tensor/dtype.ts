/** The element types, their sizes and their array types, in one table. */

/** The real element types: those that kernels know. The order has no meaning: native code identifies them by name. */
export const dtypes = [
  "float64",
  "float32",
  "float16",
  "bfloat16",
  "int64",
  "int32",
  "uint32",
  "int8",
  "uint8",
  "bool",
] as const satisfies readonly RealDType[];

/** The complex element types. Their operations run on the real and the imaginary parts: see src/backend/complex.ts. */
export const complexDTypes = ["complex64", "complex128"] as const satisfies readonly ComplexDType[];

/** A tensor's element type. */
export type DType = RealDType | ComplexDType;
/** The dtypes of real numbers, integers and bools. */
export type RealDType = FloatDType | IntegerDType | "bool";
/** The complex dtypes: a pair of float32 (`complex64`) or of float64 (`complex128`), the real part first. */
export type ComplexDType = "complex64" | "complex128";
/** The floating-point dtypes. These and the complex ones have gradients. */
export type FloatDType = "float64" | "float32" | "float16" | "bfloat16";
/** The integer dtypes. They do not include bool. */
export type IntegerDType = "int64" | "int32" | "uint32" | "int8" | "uint8";

interface DTypeFacts {
  /** Bytes per element. */
  readonly bytes: number;
  readonly kind: "float" | "signed" | "unsigned" | "bool" | "complex";
  /** The array type of stored elements. bfloat16 and bool are stored as their bits, complex numbers as pairs. */
  readonly array: StorageArrayConstructor;
}

type StorageArrayConstructor =
  | Float64ArrayConstructor
  | Float32ArrayConstructor
  | Float16ArrayConstructor
  | Uint16ArrayConstructor
  | BigInt64ArrayConstructor
  | Int32ArrayConstructor
  | Uint32ArrayConstructor
  | Int8ArrayConstructor
  | Uint8ArrayConstructor;

export const dtypeFacts = {
  float64: { bytes: 8, kind: "float", array: Float64Array },
  float32: { bytes: 4, kind: "float", array: Float32Array },
  float16: { bytes: 2, kind: "float", array: Float16Array },
  bfloat16: { bytes: 2, kind: "float", array: Uint16Array },
  int64: { bytes: 8, kind: "signed", array: BigInt64Array },
  int32: { bytes: 4, kind: "signed", array: Int32Array },
  uint32: { bytes: 4, kind: "unsigned", array: Uint32Array },
  int8: { bytes: 1, kind: "signed", array: Int8Array },
  uint8: { bytes: 1, kind: "unsigned", array: Uint8Array },
  bool: { bytes: 1, kind: "bool", array: Uint8Array },
  complex64: { bytes: 8, kind: "complex", array: Float32Array },
  complex128: { bytes: 16, kind: "complex", array: Float64Array },
} as const satisfies Record<DType, DTypeFacts>;

/** The array type of a storage's elements as they are stored. */
export type StorageArray<D extends DType = DType> = InstanceType<(typeof dtypeFacts)[D]["array"]>;

/**
 * The return types of `data()`: bfloat16 is widened to float32, and bool is 0 or 1. A complex element is two array
 * elements: its real and its imaginary part.
 */
export interface DataByDType {
  float64: Float64Array;
  float32: Float32Array;
  float16: Float16Array;
  bfloat16: Float32Array;
  int64: BigInt64Array;
  int32: Int32Array;
  uint32: Uint32Array;
  int8: Int8Array;
  uint8: Uint8Array;
  bool: Uint8Array;
  complex64: Float32Array;
  complex128: Float64Array;
}
/** The typed array that `data()` returns for a dtype: `DataOf<"float32">` is a `Float32Array`. */
export type DataOf<D extends DType> = DataByDType[D];

/** The type of an element that `item()` and `toArray()` return. */
export type ElementOf<D extends DType> = D extends "bool"
  ? boolean
  : D extends "int64"
    ? bigint
    : D extends ComplexDType
      ? Complex
      : number;

/** A complex number: its real and its imaginary part. */
export interface Complex {
  readonly re: number;
  readonly im: number;
}

/** The dtype of the real and the imaginary part; a real dtype itself. */
export type RealOf<D extends DType> = D extends "complex64" ? "float32" : D extends "complex128" ? "float64" : D;

export const isFloat = (dtype: DType): dtype is FloatDType => dtypeFacts[dtype].kind === "float";
export const isComplex = (dtype: DType): dtype is ComplexDType => dtype === "complex64" || dtype === "complex128";
/** Whether tensors of a dtype can have gradients. */
export const hasGradients = (dtype: DType): dtype is FloatDType | ComplexDType => isFloat(dtype) || isComplex(dtype);
/** Whether a tensor of one dtype can have gradients of another: complex for complex, floats for floats. */
export const isGradientDType = (gradient: DType, owner: DType): boolean =>
  isComplex(owner) ? isComplex(gradient) : isFloat(gradient);
/** Returns the dtype of the real and the imaginary part; a real dtype itself. */
export const realDType = <D extends DType>(dtype: D): RealOf<D> =>
  (dtype === "complex64" ? "float32" : dtype === "complex128" ? "float64" : dtype) as RealOf<D>;
/** Returns the complex dtype whose parts have a float dtype; float16 and bfloat16 give complex64. */
export const complexDType = (dtype: DType): ComplexDType =>
  dtype === "float64" || dtype === "complex128" ? "complex128" : "complex64";
export const isInteger = (dtype: DType): dtype is IntegerDType =>
  dtypeFacts[dtype].kind === "signed" || dtypeFacts[dtype].kind === "unsigned";
export const bytesOf = (dtype: DType): number => dtypeFacts[dtype].bytes;
/** Returns the dtype in which sums and statistics accumulate: float64 for float64, float32 for all others. */
export const accumulationDType = (dtype: DType): "float64" | "float32" => (dtype === "float64" ? "float64" : "float32");
/** Returns the dtype of intermediate results: a complex dtype itself, else {@link accumulationDType}. */
export const computationDType = (dtype: DType): "float64" | "float32" | ComplexDType =>
  isComplex(dtype) ? dtype : accumulationDType(dtype);
export const isDType = (name: unknown): name is DType => typeof name === "string" && Object.hasOwn(dtypeFacts, name);

const integerRanges: Readonly<Record<IntegerDType | "bool", readonly [bigint, bigint]>> = {
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int8: [-128n, 127n],
  uint8: [0n, 255n],
  bool: [0n, 1n],
};

/** Returns the smallest and the largest value of an integer dtype. */
export const integerRange = (dtype: IntegerDType | "bool"): readonly [bigint, bigint] => integerRanges[dtype];

/**
 * Returns the dtype of a typed array's elements; undefined for types that tensors lack (16-bit integers, clamped
 * bytes).
 */
export function dtypeOfArray(array: ArrayBufferView): RealDType | undefined {
  const name: string | undefined = nameOfArray.call(array); // the object could override its properties
  return name !== undefined && Object.hasOwn(dtypeByArray, name) ? dtypeByArray[name] : undefined;
}

/** Returns a typed array's location in memory from the engine, since the object may override its properties. */
export const extentOf = (array: ArrayBufferView): Pick<ArrayBufferView, "buffer" | "byteOffset" | "byteLength"> => ({
  buffer: bufferOfArray.call(array),
  byteOffset: offsetOfArray.call(array),
  byteLength: lengthOfArray.call(array),
});

const getterOfArrays = <Value>(name: string | symbol) =>
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), name)!.get as () => Value;
const nameOfArray = getterOfArrays<string | undefined>(Symbol.toStringTag);
const bufferOfArray = getterOfArrays<ArrayBufferLike>("buffer");
const offsetOfArray = getterOfArrays<number>("byteOffset");
const lengthOfArray = getterOfArrays<number>("byteLength");

const dtypeByArray: Readonly<Record<string, RealDType>> = {
  Float64Array: "float64",
  Float32Array: "float32",
  Float16Array: "float16",
  BigInt64Array: "int64",
  Int32Array: "int32",
  Uint32Array: "uint32",
  Int8Array: "int8",
  Uint8Array: "uint8",
};
