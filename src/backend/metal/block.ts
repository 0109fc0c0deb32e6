import { ABI_VERSION, type Layout } from "./layouts.ts";

/** An array of structs inside a block, each field as in {@link Fields}. */
export interface StructArray {
  readonly layout: Layout;
  readonly items: readonly Fields[];
}

/** Values of a struct's fields. A span accepts text, bytes or an array of structs. Omitted fields are zero. */
export type Fields = Readonly<
  Record<string, number | string | ArrayBufferView | StructArray | readonly number[] | undefined>
>;

const encoder = new TextEncoder();

/**
 * Writes a descriptor block: a struct, then the targets of its spans. A block contains no pointers, so it is a plain
 * byte array that the garbage collector may move before the call.
 */
export function writeBlock(layout: Layout, fields: Fields): Uint8Array {
  if (writer.bytes.length > MOST_KEPT) writer = new BlockWriter();
  writer.length = 0;
  writer.struct(layout, writer.reserve(layout.size), fields);
  return writer.bytes.slice(0, writer.length);
}

const MOST_KEPT = 2 ** 16; // bytes; sources of kernels are larger

class BlockWriter {
  bytes = new Uint8Array(512);
  length = 0;
  private view = new DataView(this.bytes.buffer);

  /** Reserves `length` zero bytes, aligned to 8, and returns their offset. */
  reserve(length: number): number {
    const at = (this.length + 7) & ~7;
    const end = at + length;
    if (end > this.bytes.length) {
      const larger = new Uint8Array(Math.max(end, this.bytes.length * 2));
      larger.set(this.bytes.subarray(0, this.length));
      this.bytes = larger;
      this.view = new DataView(larger.buffer);
    }
    this.bytes.fill(0, this.length, end);
    this.length = end;
    return at;
  }

  struct(layout: Layout, at: number, fields: Fields): void {
    if (layout.offsets["version"] === 4) {
      this.view.setUint32(at, layout.size, true);
      this.view.setUint32(at + 4, ABI_VERSION, true);
    }
    for (const name in fields) {
      const value = fields[name];
      const type = layout.fields[name];
      const offset = layout.offsets[name];
      if (type === undefined || offset === undefined) throw new TypeError(`no field ${name} in this block`);
      if (value !== undefined) this.field(type, at + offset, value);
    }
  }

  private field(type: string, at: number, value: NonNullable<Fields[string]>): void {
    if (type === "span") this.span(at, value as string | ArrayBufferView | StructArray);
    else if (type === "u8[32]") this.bytes.set(asBytes(value as ArrayBufferView), at);
    else if (type === "u32") this.view.setUint32(at, value as number, true);
    else if (type === "i32") this.view.setInt32(at, value as number, true);
    else if (type === "u64") this.word(at, value as number);
    else this.array(type, at, value as readonly number[]);
  }

  private array(type: string, at: number, values: readonly number[]): void {
    const wide = type !== "u32[3]";
    for (let index = 0; index < values.length; index++) {
      if (wide) this.word(at + 8 * index, values[index]);
      else this.view.setUint32(at + 4 * index, values[index], true);
    }
  }

  /** Writes 64 bits: a bigint would take longer than all other fields. */
  private word(at: number, value: number): void {
    if (!Number.isInteger(value)) throw new RangeError(`expected an integer in this block, got ${value}`);
    this.view.setUint32(at, value, true); // modulo 2^32
    this.view.setUint32(at + 4, Math.floor(value / 2 ** 32), true);
  }

  private span(at: number, value: string | ArrayBufferView | StructArray): void {
    if (typeof value === "object" && "items" in value) {
      const { layout, items } = value;
      const start = this.reserve(layout.size * items.length);
      this.setSpan(at, start, layout.size * items.length);
      for (let index = 0; index < items.length; index++) this.struct(layout, start + index * layout.size, items[index]);
      return;
    }
    const payload = typeof value === "string" ? encoder.encode(value) : asBytes(value);
    const start = this.reserve(payload.length);
    this.bytes.set(payload, start);
    this.setSpan(at, start, payload.length);
  }

  private setSpan(at: number, offset: number, length: number): void {
    this.view.setUint32(at, offset, true);
    this.view.setUint32(at + 4, length, true);
  }
}

let writer = new BlockWriter();

/** Returns the bytes of a view without copying. */
export function asBytes(view: ArrayBufferView): Uint8Array {
  return view instanceof Uint8Array ? view : new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/** Creates an empty struct for the dylib to fill in. */
export function emptyStruct(layout: Layout): Uint8Array {
  return writeBlock(layout, {});
}

/** Reads the scalar fields of a struct that the dylib filled in. */
export function readStruct<Name extends string>(layout: Layout, bytes: Uint8Array): Record<Name, number> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const result: Record<string, number> = {};
  for (const [name, type] of Object.entries(layout.fields)) {
    const offset = layout.offsets[name];
    if (type === "u32") result[name] = view.getUint32(offset, true);
    else if (type === "u64") result[name] = Number(view.getBigUint64(offset, true));
  }
  return result;
}
