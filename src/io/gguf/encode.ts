/** Encodes GGUF headers. */
import { describeValue } from "../../core/describe.ts";
import { ArgumentError } from "../../core/errors.ts";
import { type GgufType, type GgufValue, MAGIC, type NumberLayout, numberLayouts, valueTypes } from "./types.ts";

/** A growing buffer of bytes. */
export class Bytes {
  private readonly parts: Uint8Array[] = [];
  length = 0;

  add(bytes: Uint8Array): void {
    this.parts.push(bytes);
    this.length += bytes.byteLength;
  }

  number({ bytes, write }: NumberLayout, value: number | bigint): void {
    const part = new Uint8Array(bytes);
    write(new DataView(part.buffer), 0, value);
    this.add(part);
  }

  uint32(value: number): void {
    this.number(numberLayouts.uint32, value);
  }

  uint64(value: number | bigint): void {
    this.number(numberLayouts.uint64, value);
  }

  text(value: string): void {
    const bytes = Buffer.from(value);
    this.uint64(bytes.byteLength);
    this.add(bytes);
  }

  /** Adds zeros up to a multiple of the alignment. */
  pad(alignment: number): void {
    this.add(new Uint8Array(padding(this.length, alignment)));
  }

  all(): Uint8Array {
    return Buffer.concat(this.parts);
  }
}

/** Returns the number of bytes up to the next multiple of the alignment. */
export const padding = (length: number, alignment: number): number => (alignment - (length % alignment)) % alignment;

/** A tensor's entry in the header. */
export interface WrittenTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly type: number;
  readonly offset: number;
}

/** Encodes a header of version 3, padded to the alignment. */
export function encodeHeader(
  metadata: readonly (readonly [key: string, value: GgufValue])[],
  tensors: readonly WrittenTensor[],
  alignment: number,
): Uint8Array {
  const bytes = new Bytes();
  bytes.add(Buffer.from(MAGIC));
  bytes.uint32(3);
  bytes.uint64(tensors.length);
  bytes.uint64(metadata.length);
  for (const [key, value] of metadata) {
    bytes.text(key);
    bytes.uint32(numberOf(value.type));
    addValue(bytes, value);
  }
  for (const { name, shape, type, offset } of tensors) {
    bytes.text(name);
    bytes.uint32(shape.length);
    for (const size of shape.toReversed()) bytes.uint64(size);
    bytes.uint32(type);
    bytes.uint64(offset);
  }
  bytes.pad(alignment);
  return bytes.all();
}

const numberOf = (type: GgufType): number => valueTypes.indexOf(type);

function addValue(bytes: Bytes, entry: GgufValue): void {
  if (entry.type !== "array") {
    addScalar(bytes, entry.type, entry.value);
    return;
  }
  bytes.uint32(numberOf(entry.of));
  bytes.uint64(entry.value.length);
  if (entry.of === "array") for (const inner of entry.value) addValue(bytes, inner);
  else for (const value of entry.value) addScalar(bytes, entry.of, value);
}

function addScalar(bytes: Bytes, type: Exclude<GgufType, "array">, value: unknown): void {
  if (type === "string") bytes.text(value as string);
  else if (type === "bool") bytes.add(Uint8Array.of(value === true ? 1 : 0));
  else bytes.number(numberLayouts[type], value as number | bigint);
}

/** A metadata value for {@link saveGguf}: with its type, or a plain value, whose type is inferred. */
export type GgufInput = GgufValue | string | number | bigint | boolean | readonly (string | number | boolean)[];

const refuse = (operation: string, key: string, expected: string, value: unknown): ArgumentError =>
  new ArgumentError(
    operation,
    "invalidMetadata",
    `expected metadata ${describeValue(key)} to be ${expected}, got ${describeValue(value)}`,
  );

/** Infers the type of a metadata value, and checks it. @throws {ArgumentError} `invalidMetadata` */
export function typed(operation: string, key: string, value: unknown): GgufValue {
  if (Array.isArray(value)) {
    const of = [...new Set(value.map((each) => plainType(operation, key, each)))];
    const [type = "string"] = of;
    if (of.length <= 1) return checked(operation, key, { type: "array", of: type, value }, 0);
    // A list of several number types.
    return checked(operation, key, { type: "array", of: common(operation, key, of, value), value }, 0);
  }
  if (typeof value === "object" && value !== null) return checked(operation, key, value as GgufValue, 0);
  return checked(operation, key, { type: plainType(operation, key, value), value } as GgufValue, 0);
}

function common(operation: string, key: string, types: readonly GgufType[], value: unknown): GgufType {
  const are = (...some: readonly GgufType[]) => types.every((type) => some.includes(type));
  if (are("uint32", "int32")) return "int32";
  if (are("uint32", "int32", "float32")) return "float32";
  throw refuse(operation, key, "a list of values of one type", value);
}

function plainType(operation: string, key: string, value: unknown): Exclude<GgufType, "array"> {
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "bigint") return value < 0n ? "int64" : "uint64";
  if (typeof value !== "number")
    throw refuse(operation, key, "a string, a number, a boolean, a bigint or a list", value);
  if (numberLayouts.uint32.holds(value)) return "uint32";
  return numberLayouts.int32.holds(value) ? "int32" : "float32";
}

function checked(operation: string, key: string, entry: GgufValue, depth: number): GgufValue {
  const { type } = entry;
  if (!isType(type)) throw refuse(operation, key, `of one of the types ${valueTypes.join(", ")}`, type);
  if (type !== "array") return { type, value: scalar(operation, key, type, entry.value) };
  const { of, value } = entry;
  if (!isType(of)) throw refuse(operation, key, `an array of one of the types ${valueTypes.join(", ")}`, of);
  if (!Array.isArray(value)) throw refuse(operation, key, "an array with a list as its value", value);
  if (depth > 15) throw refuse(operation, key, "nested at most 16 arrays deep", value);
  const items: unknown[] = value.map((each: unknown) =>
    of === "array"
      ? checked(operation, key, anArray(operation, key, each), depth + 1)
      : scalar(operation, key, of, each),
  );
  return { type, of, value: items } as GgufValue;
}

const isType = (type: unknown): type is GgufType => (valueTypes as readonly unknown[]).includes(type);

function anArray(operation: string, key: string, value: unknown): GgufValue {
  if (typeof value === "object" && value !== null && (value as GgufValue).type === "array") return value as GgufValue;
  throw refuse(operation, key, "an array of arrays with their types", value);
}

function scalar(operation: string, key: string, type: Exclude<GgufType, "array">, value: unknown) {
  const holds =
    type === "string"
      ? typeof value === "string" && value.isWellFormed()
      : type === "bool"
        ? typeof value === "boolean"
        : numberLayouts[type].holds(value);
  if (holds) return value as string;
  throw refuse(operation, key, `a value of type ${type}`, value);
}
