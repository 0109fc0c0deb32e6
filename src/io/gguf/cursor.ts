/** Reads the header of a file from its beginning, and never beyond its end. */
import type { FileFormatError } from "../../core/errors.ts";
import type { TensorFile } from "../tensor_file.ts";

/** Creates an error about the file. @param tensor the name of the invalid tensor */
export type Fail = (code: string, message: string, tensor?: string) => FileFormatError;

/** The limit of headers, as for safetensors files: a hostile header must not exhaust memory. */
export const MAX_HEADER_BYTES = 100_000_000;
/** The limit of counts, since each item becomes a JavaScript value of 8 bytes or more. */
const MAX_COUNT = 2 ** 24;
const WINDOW_BYTES = 2 ** 20;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class Cursor {
  /** The position of the next byte. */
  position = 0;
  private window = Buffer.alloc(0);
  private view = new DataView(new ArrayBuffer(0));
  private windowStart = 0;

  constructor(
    private readonly file: TensorFile,
    readonly fail: Fail,
  ) {}

  /** @throws {FileFormatError} if the file has fewer bytes left, or the header would exceed its limit. */
  need(bytes: number | bigint, what: string): void {
    const left = this.file.byteLength - this.position;
    if (bytes > left)
      throw this.fail("truncated", `expected ${bytes} bytes of ${what} at byte ${this.position}, got ${left}`);
    // At most the size of the file, so the conversion is exact.
    if (this.position + Number(bytes) > MAX_HEADER_BYTES)
      throw this.fail("headerTooLong", `expected a header of at most ${MAX_HEADER_BYTES} bytes, got ${what} beyond it`);
  }

  /** Returns the next bytes, as a view that is valid until the next call. */
  take(bytes: number, what: string): DataView {
    const at = this.advance(bytes, what);
    return new DataView(this.view.buffer, at, bytes);
  }

  /** Skips bytes, and returns their offset in the window. */
  private advance(bytes: number, what: string): number {
    this.need(bytes, what);
    if (this.position + bytes > this.windowStart + this.window.byteLength) this.fill(bytes);
    const at = this.position - this.windowStart;
    this.position += bytes;
    return at;
  }

  private fill(bytes: number): void {
    const length = Math.min(Math.max(bytes, WINDOW_BYTES), this.file.byteLength - this.position);
    const buffer = this.file.read(this.position, length).buffer as ArrayBuffer;
    this.window = Buffer.from(buffer);
    this.view = new DataView(buffer);
    this.windowStart = this.position;
  }

  uint32(what: string): number {
    const at = this.advance(4, what);
    return this.view.getUint32(at, true);
  }

  uint64(what: string): bigint {
    const at = this.advance(8, what);
    return this.view.getBigUint64(at, true);
  }

  /** Reads a count of items, each of at least `leastBytes`. */
  count(what: string, leastBytes: number): number {
    const count = this.uint64(`the number of ${what}`);
    if (count > MAX_COUNT) throw this.fail("tooMany", `expected at most ${MAX_COUNT} ${what}, got ${count}`);
    this.need(count * BigInt(leastBytes), `${count} ${what}`);
    return Number(count);
  }

  /** Reads a string: its length, then its bytes in UTF-8. */
  text(what: string, most = MAX_HEADER_BYTES): string {
    const start = this.position;
    const length = this.shortLength(most) ?? this.length(what, most);
    const at = this.advance(length, what);
    const end = at + length;
    if (this.isAscii(at, end)) return this.window.toString("latin1", at, end);
    try {
      return utf8.decode(this.window.subarray(at, end));
    } catch {
      throw this.fail("notUtf8", `expected ${what} at byte ${start} to be UTF-8`);
    }
  }

  /**
   * Reads the length of a string if both the length and the string are in the window, as is usual; else returns
   * undefined. It builds no error messages.
   */
  private shortLength(most: number): number | undefined {
    const at = this.position - this.windowStart;
    if (at + 8 > this.window.byteLength || this.view.getUint32(at + 4, true) !== 0) return undefined;
    const length = this.view.getUint32(at, true);
    if (length > most || at + 8 + length > this.window.byteLength) return undefined;
    this.position += 8;
    return length;
  }

  private length(what: string, most: number): number {
    const length = this.uint64(`the length of ${what}`);
    if (length > most) throw this.fail("textTooLong", `expected ${what} of at most ${most} bytes, got ${length}`);
    return Number(length);
  }

  /** Whether bytes are ASCII. Most strings of a vocabulary are, and are so short that a decoder call would dominate. */
  private isAscii(at: number, end: number): boolean {
    let bits = 0;
    for (let byte = at; byte < end; byte++) bits |= this.window[byte];
    return bits < 0x80;
  }
}
