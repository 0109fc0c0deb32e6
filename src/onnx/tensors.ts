/** Converts the tensors of an ONNX file. */
import { dirname, isAbsolute, join, relative } from "node:path";
import { FileFormatError } from "../core/errors.ts";
import { TensorFile, type TensorPlace } from "../io/tensor_file.ts";
import { tensor } from "../ops/creation/tensor.ts";
import { type DType, dtypeFacts, type RealDType } from "../tensor/dtype.ts";
import { elementCount } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { kept } from "./kept_types.ts";
import type { FileRange, TensorProto } from "./schema.ts";
import { e8m0Value, smallFloats, smallFloatValue } from "./small_floats.ts";
import { type OnnxStrings, stringsOf } from "./strings.ts";

/** An element type of ONNX: its dtype here, and how an element is stored. */
interface ElementType {
  readonly name: string;
  readonly dtype: RealDType;
  readonly bits: 2 | 4 | 8 | 16 | 32 | 64;
  /**
   * The integer type of the values, if no dtype matches. The values are stored in a wider dtype, and casts to the type
   * wrap.
   */
  readonly wraps?: { readonly bits: number; readonly isSigned: boolean };
  /** For floats without a dtype: the value of each code. Casts to the type round. */
  readonly values?: readonly number[];
}

/** Describes a float of up to 8 bits. */
const smallFloat = (name: string): ElementType => {
  const [format, bits] = [smallFloats[name], name.startsWith("float4") ? 4 : 8] as const;
  const values = Array.from({ length: 2 ** bits }, (_, code) =>
    format ? smallFloatValue(format, code) : e8m0Value(code),
  );
  return { name, dtype: "float32", bits, values };
};

/** The element types by their numbers in TensorProto.DataType. */
const elementTypes: Readonly<Record<number, ElementType>> = {
  1: { name: "float", dtype: "float32", bits: 32 },
  2: { name: "uint8", dtype: "uint8", bits: 8 },
  3: { name: "int8", dtype: "int8", bits: 8 },
  4: { name: "uint16", dtype: "int32", bits: 16, wraps: { bits: 16, isSigned: false } },
  5: { name: "int16", dtype: "int32", bits: 16, wraps: { bits: 16, isSigned: true } },
  6: { name: "int32", dtype: "int32", bits: 32 },
  7: { name: "int64", dtype: "int64", bits: 64 },
  9: { name: "bool", dtype: "bool", bits: 8 },
  10: { name: "float16", dtype: "float16", bits: 16 },
  11: { name: "double", dtype: "float64", bits: 64 },
  12: { name: "uint32", dtype: "uint32", bits: 32 },
  13: { name: "uint64", dtype: "int64", bits: 64, wraps: { bits: 64, isSigned: false } },
  16: { name: "bfloat16", dtype: "bfloat16", bits: 16 },
  17: smallFloat("float8e4m3fn"),
  18: smallFloat("float8e4m3fnuz"),
  19: smallFloat("float8e5m2"),
  20: smallFloat("float8e5m2fnuz"),
  23: smallFloat("float4e2m1"),
  24: smallFloat("float8e8m0"),
  21: { name: "uint4", dtype: "uint8", bits: 4, wraps: { bits: 4, isSigned: false } },
  22: { name: "int4", dtype: "int8", bits: 4, wraps: { bits: 4, isSigned: true } },
  25: { name: "uint2", dtype: "uint8", bits: 2, wraps: { bits: 2, isSigned: false } },
  26: { name: "int2", dtype: "int8", bits: 2, wraps: { bits: 2, isSigned: true } },
};

/** Names of the types without a counterpart, for messages. */
const otherTypes: Readonly<Record<number, string>> = {
  0: "undefined",
  8: "string",
  14: "complex64",
  15: "complex128",
  27: "float6e2m3",
  28: "float6e3m2",
};

/** Returns an element type by its number; undefined if there is no counterpart. */
export const elementType = (number: number): ElementType | undefined => elementTypes[number];
export const elementTypeName = (number: number): string =>
  elementTypes[number]?.name ?? otherTypes[number] ?? `number ${number}`;

/** Returns the dtype that holds an element type, by its name in ONNX; undefined if there is none. */
export const dtypeOfName = (name: string): DType | undefined =>
  Object.values(elementTypes).find((type) => type.name === name)?.dtype;

/**
 * Returns the standard's number of an element type that no dtype matches, given its name; undefined for other names.
 */
export function keptTypeOfName(name: string): number | undefined {
  const found = Object.entries(elementTypes).find(([, type]) => type.name === name);
  return found && isKept(found[1]) ? Number(found[0]) : undefined;
}

/** Whether the type of a tensor must be recorded. uint64 is treated as int64. */
export const isKept = ({ wraps, values }: ElementType): boolean =>
  values !== undefined || (wraps !== undefined && wraps.bits < 64);

/** The files of a model, each opened once. */
export class OpenFiles implements Disposable {
  readonly #files = new Map<string, TensorFile>();

  open(path: string): TensorFile {
    const known = this.#files.get(path);
    if (known) return known;
    const file = new TensorFile(path, "loadOnnx");
    this.#files.set(path, file);
    return file;
  }

  [Symbol.dispose](): void {
    for (const file of this.#files.values()) file.close();
  }
}

/** The location of a model: the file that errors name, and the folder of its external data. */
export interface FilePlace {
  readonly path: string;
  /** The folder of the model's file; undefined if the model was passed as bytes, and so has no external data. */
  readonly folder?: string | undefined;
  readonly files?: OpenFiles | undefined;
}

const fail = (place: FilePlace, proto: TensorProto, message: string): FileFormatError =>
  new FileFormatError("loadOnnx", "damaged", place.path, message, proto.name);

/** Converts a tensor of numbers or strings from the file. @throws as {@link toTensor} */
export function toValue(proto: TensorProto, place: FilePlace): Tensor | OnnxStrings {
  if (proto.dataType !== STRING) return toTensor(proto, place);
  const shape = checkedShape(proto, place);
  if (proto.strings.length !== elementCount(shape))
    throw fail(
      place,
      proto,
      `expected ${elementCount(shape)} strings for shape [${shape}], got ${proto.strings.length}`,
    );
  const decoder = new TextDecoder();
  return stringsOf(
    proto.strings.map((bytes) => decoder.decode(bytes)),
    shape,
  );
}

/** The number of the string type in TensorProto.DataType. */
export const STRING = 8;

/**
 * Converts a tensor of numbers from the file.
 *
 * @throws {FileFormatError} for an element type without a counterpart, or if the data does not fit the shape.
 * @throws {FileError} if external data can't be read.
 */
export function toTensor(proto: TensorProto, place: FilePlace): Tensor {
  const type = elementTypes[proto.dataType];
  if (!type) throw fail(place, proto, `elements of type ${elementTypeName(proto.dataType)} are not supported`);
  const shape = checkedShape(proto, place);
  const count = elementCount(shape);
  const stored = storedPart(proto, place);
  const expected = Math.ceil((count * type.bits) / 8);
  const length = stored?.length ?? proto.raw?.length ?? expected;
  if (length !== expected) throw fail(place, proto, `expected ${expected} bytes for shape [${shape}], got ${length}`);
  if (stored && isUnchanged(type)) return readTensor(stored, { name: proto.name, dtype: type.dtype, shape });
  const bytes = stored?.file.read(stored.position, length) ?? proto.raw;
  const list = bytes ? fromBytes(bytes, type, count) : fromLists(proto, type);
  if (list.length !== count)
    throw fail(place, proto, `expected ${count} elements for shape [${shape}], got ${list.length}`);
  const result = make(list, type, shape);
  return isKept(type) ? kept(result, proto.dataType) : result;
}

function checkedShape(proto: TensorProto, place: FilePlace): number[] {
  const wrong = proto.dims.find((size) => !Number.isSafeInteger(size) || size < 0);
  if (wrong !== undefined) throw fail(place, proto, `expected sizes of at least 0, got ${wrong}`);
  return proto.dims;
}

type Elements = ArrayLike<number> | ArrayLike<bigint>;

function make(list: Elements, type: ElementType, shape: readonly number[]): Tensor {
  if (type.dtype === "bool") return tensor(Array.from(list, Boolean), { shape, dtype: "bool" });
  return tensor(list as never, { shape, dtype: type.dtype });
}

/**
 * Reads little-endian elements; all supported machines are little-endian. Bytes at an address that is not a multiple of
 * 8 are copied.
 */
function fromBytes(bytes: Uint8Array, type: ElementType, count: number): Elements {
  const { buffer, byteOffset } = bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes);
  if (type.bits < 8 || type.values) return fromCodes(bytes, type, count);
  if (type.bits === 16 && type.wraps)
    return Array.from(new (type.wraps.isSigned ? Int16Array : Uint16Array)(buffer as ArrayBuffer, byteOffset, count));
  const list = new dtypeFacts[type.dtype].array(buffer as ArrayBuffer, byteOffset, count);
  return type.dtype === "bfloat16" ? Float32Array.from(list as Uint16Array, bfloat16Value) : list;
}

/** Decodes values of up to 8 bits, from the low bits of each byte. */
function fromCodes(bytes: Uint8Array, { bits, wraps, values }: ElementType, count: number): number[] {
  const perByte = 8 / bits;
  return Array.from({ length: count }, (_, at) => {
    const code = (bytes[Math.floor(at / perByte)] >> ((at % perByte) * bits)) & (2 ** bits - 1);
    if (values) return values[code];
    return wraps!.isSigned && code >= 2 ** (bits - 1) ? code - 2 ** bits : code;
  });
}

const single = new DataView(new ArrayBuffer(4));

function bfloat16Value(bits: number): number {
  single.setUint32(0, bits << 16);
  return single.getFloat32(0);
}

/**
 * Reads the typed lists of a tensor. `int32_data` holds types of up to 32 bits, half precision as raw bits, and several
 * elements of fewer than 8 bits in one integer.
 */
function fromLists(proto: TensorProto, type: ElementType): Elements {
  if (type.dtype === "float32" && !type.values) return Float32Array.from(proto.floats);
  if (type.dtype === "float64") return Float64Array.from(proto.doubles);
  if (type.bits === 64) return BigInt64Array.from(proto.ints);
  const ints = proto.ints.map((value) => Number(BigInt.asIntN(64, value)));
  if (type.bits < 8 || type.values) {
    const count = elementCount(proto.dims);
    return fromCodes(Uint8Array.from(ints), type, Math.min(count, (ints.length * 8) / type.bits));
  }
  if (type.dtype === "float16") return new Float16Array(Uint16Array.from(ints).buffer);
  if (type.dtype === "bfloat16") return Float32Array.from(ints, bfloat16Value);
  return ints;
}

/** The part of a file that has a tensor's bytes. */
interface StoredPart extends FileRange {
  readonly file: TensorFile;
  readonly isExternal: boolean;
}

/** Returns the part of a file that has a tensor's bytes; undefined for bytes that were read already. */
function storedPart(proto: TensorProto, place: FilePlace): StoredPart | undefined {
  if (proto.isExternal) return externalPart(proto, place);
  if (!proto.range) return undefined;
  const file = place.files?.open(place.path);
  if (!file || !isRange(proto.range, file.byteLength)) throw fail(place, proto, "its data is outside the file");
  return { ...proto.range, file, isExternal: false };
}

/** Returns the place of bytes in another file, from the entries "location", and optionally "offset" and "length". */
function externalPart(proto: TensorProto, place: FilePlace): StoredPart {
  const entries = new Map(proto.external.map(({ key, value }) => [key, value]));
  const location = entries.get("location");
  if (!location) throw fail(place, proto, "its external data has no location");
  if (place.folder === undefined || !place.files)
    throw fail(place, proto, `its data is in the file ${location}; load the model by its path, not as bytes`);
  const path = join(place.folder, location);
  const inside = relative(place.folder, path);
  if (isAbsolute(location) || inside.startsWith("..") || isAbsolute(inside))
    throw fail(place, proto, `its data is in ${location}, outside the model's folder`);
  const file = place.files.open(path);
  const position = Number(entries.get("offset") ?? 0);
  const length = entries.has("length") ? Number(entries.get("length")) : file.byteLength - position;
  if (!isRange({ position, length }, file.byteLength)) {
    const bytes = `bytes ${position} to ${position + length} of ${location}`;
    throw fail(place, proto, `its data is ${bytes}, which has ${file.byteLength}`);
  }
  return { file, position, length, isExternal: true };
}

/**
 * Whether the file stores elements in the same form as a tensor does. Bools differ: in a file, any nonzero byte is
 * true.
 */
const isUnchanged = (type: ElementType): boolean => !isKept(type) && type.dtype !== "bool";

/** Maps large, aligned external data. Other data are copied, so that the model's file may be replaced during use. */
function readTensor({ file, position, isExternal }: StoredPart, described: Omit<TensorPlace, "position">): Tensor {
  const place = { ...described, position };
  return isExternal ? file.tensor(place) : file.copiedTensor(place);
}

const isRange = ({ position, length }: FileRange, size: number): boolean =>
  [position, length].every((each) => Number.isSafeInteger(each) && each >= 0) && position + length <= size;

/** Returns the folder of a model's file. */
export const folderOf = (path: string): string => dirname(path);
