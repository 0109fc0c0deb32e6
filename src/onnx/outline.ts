/**
 * Reads the structure of an ONNX file without the elements of its large tensors, which are then read one at a time,
 * each into the memory of its tensor.
 */
import type { TensorFile } from "../io/tensor_file.ts";

/**
 * The field of TensorProto that replaces `raw_data` in an outline: the position and the length of the bytes in the
 * file, as two float64. The standard does not use this number, and an outline drops the field from the file.
 */
export const RANGE_FIELD = 0x0f_ff_ff_ff;
const RAW_DATA = 9;

/** A type of message, with the fields through which it may contain tensors. */
interface Message {
  /** The types of the messages in these fields, by field number. */
  readonly inner: Readonly<Record<number, () => Message>>;
  readonly isTensor?: true;
}

const tensor: Message = { inner: {}, isTensor: true };
const sparse: Message = { inner: { 1: () => tensor, 2: () => tensor } };
const attribute: Message = {
  inner: { 5: () => tensor, 6: () => graph, 10: () => tensor, 11: () => graph, 22: () => sparse },
};
const node: Message = { inner: { 5: () => attribute } };
const graph: Message = { inner: { 1: () => node, 5: () => tensor, 15: () => sparse } };
const functionMessage: Message = { inner: { 7: () => node, 11: () => attribute } };
const model: Message = { inner: { 7: () => graph, 25: () => functionMessage } };

/** Smaller messages are copied whole. */
const LARGE = 4096;
/** Deeper messages are copied whole; the parser rejects graphs nested as deeply. */
const MOST_NESTED = 300;
/** The largest outline: a model's nodes take a few megabytes. */
const MOST_BYTES = 2 ** 30;

/**
 * Returns the file's bytes, with a {@link RANGE_FIELD} in place of each large `raw_data`. Damaged parts are copied as
 * they are, for the parser to reject.
 *
 * @throws {RangeError} if the outline is too large for memory
 */
export function readOutline(file: TensorFile): Uint8Array {
  const pieces = new Outline(new FilePages(file)).message(model, 0, file.byteLength, 0);
  return Buffer.concat(pieces);
}

class Outline {
  private copied = 0;

  constructor(private readonly pages: FilePages) {}

  /** Returns the pieces of the message in a part of the file. */
  message({ inner, isTensor }: Message, start: number, end: number, depth: number): Uint8Array[] {
    const pieces: Uint8Array[] = [];
    let [from, at] = [start, start];
    while (at < end) {
      const field = fieldAt(this.pages, at, end);
      if (!field) break;
      const next = field.content + field.length;
      const isRange = field.number === RANGE_FIELD;
      const isRaw = isTensor && field.number === RAW_DATA && field.isBytes && field.length >= LARGE;
      const within = field.isBytes && field.length >= LARGE && depth < MOST_NESTED ? inner[field.number] : undefined;
      if (isRange || isRaw || within) {
        pieces.push(this.copy(from, at));
        from = next;
      }
      if (isRaw) pieces.push(rangeField(field.content, field.length));
      if (within) {
        const content = this.message(within(), field.content, next, depth + 1);
        pieces.push(header(field.number, bytesIn(content)), ...content);
      }
      at = next;
    }
    pieces.push(this.copy(from, end));
    return pieces;
  }

  private copy(start: number, end: number): Uint8Array {
    this.copied += end - start;
    if (this.copied > MOST_BYTES) throw new RangeError(`its nodes take more than ${MOST_BYTES} bytes`);
    return this.pages.copy(start, end);
  }
}

const bytesIn = (pieces: readonly Uint8Array[]): number => pieces.reduce((sum, { length }) => sum + length, 0);

interface FieldPlace {
  readonly number: number;
  readonly isBytes: boolean;
  readonly content: number;
  readonly length: number;
}

const [VARINT, FIXED64, BYTES, FIXED32] = [0, 1, 2, 5];

/** Returns the place of a field; undefined if it is damaged. */
function fieldAt(pages: FilePages, at: number, end: number): FieldPlace | undefined {
  const key = varintAt(pages, at, end);
  if (!key) return undefined;
  const [number, wire] = [Math.floor(key.value / 8), key.value % 8];
  const place = { number, isBytes: wire === BYTES, content: key.next };
  const size = wire === BYTES || wire === VARINT ? varintAt(pages, key.next, end) : undefined;
  if (wire === VARINT && size) return { ...place, length: size.next - key.next };
  if (wire === BYTES && size && size.value <= end - size.next)
    return { ...place, content: size.next, length: size.value };
  const fixed = wire === FIXED64 ? 8 : wire === FIXED32 ? 4 : Infinity;
  return fixed <= end - key.next ? { ...place, length: fixed } : undefined;
}

function varintAt(pages: FilePages, at: number, end: number): { value: number; next: number } | undefined {
  let value = 0;
  for (let index = 0; index < 10 && at + index < end; index++) {
    const byte = pages.byte(at + index);
    value += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) return { value, next: at + index + 1 };
  }
  return undefined;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    bytes.push(rest < 128 ? rest : (rest % 128) + 128);
    if (rest < 128) return bytes;
  }
}

const header = (number: number, length: number): Uint8Array =>
  Uint8Array.from([...varint(number * 8 + BYTES), ...varint(length)]);

const rangeField = (position: number, length: number): Uint8Array =>
  Buffer.concat([header(RANGE_FIELD, 16), new Uint8Array(Float64Array.of(position, length).buffer)]);

/** Reads a file through a buffer of one page. */
class FilePages {
  private page: Uint8Array = new Uint8Array(0);
  private start = 0;

  constructor(private readonly file: TensorFile) {}

  byte(at: number): number {
    const offset = at - this.start;
    if (offset >= 0 && offset < this.page.length) return this.page[offset];
    this.page = this.file.read(at, Math.min(PAGE, this.file.byteLength - at));
    this.start = at;
    return this.page[0];
  }

  copy(start: number, end: number): Uint8Array {
    const offset = start - this.start;
    if (offset >= 0 && end - this.start <= this.page.length) return this.page.slice(offset, end - this.start);
    return this.file.read(start, end - start);
  }
}

const PAGE = 1 << 15;
