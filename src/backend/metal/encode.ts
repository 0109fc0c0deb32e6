/** Encodes dispatches of user kernels and built-in kernels. */
import { type CapturedDispatch, capture } from "../../observe/capture.ts";
import { type Access, GridKind } from "./abi.ts";
import { asBytes } from "./block.ts";
import type { MetalContext } from "./context.ts";
import { ABI_VERSION, layouts } from "./layouts.ts";

/** Width, height and depth; omitted ones are 1. */
export type Size = number | readonly [number, number?, number?];

/** A buffer argument, as in `layouts.binding`. A length of 0 is the rest of the buffer. */
export interface BoundBuffer {
  /** The handle. */
  readonly buffer: number;
  readonly offset: number;
  readonly length: number;
  readonly index: number;
  readonly access: (typeof Access)[keyof typeof Access];
}

/** An argument that is copied with the dispatch. */
export interface InlineBytes {
  readonly index: number;
  readonly bytes: ArrayBufferView;
}

/** The length of a threadgroup argument in bytes. */
export interface ThreadgroupMemory {
  readonly index: number;
  readonly length: number;
}

/** A dispatch, ready to be encoded. */
export interface Dispatch {
  /** The pipeline's handle. */
  readonly pipeline: number;
  readonly grid: Size;
  /** Whether the grid counts threads or threadgroups. */
  readonly gridKind: keyof typeof GridKind;
  readonly threadgroup: Size;
  readonly buffers: readonly BoundBuffer[];
  readonly inline: readonly InlineBytes[];
  readonly threadgroupMemory: readonly ThreadgroupMemory[];
  readonly label: string;
  /** The tensors at `buffers`, for a recording; undefined if a buffer does not belong to a tensor. */
  readonly operands?: CapturedDispatch["operands"];
  /** The built-in kernel, for a recording; undefined for other kernels. */
  readonly kernel?: CapturedDispatch["kernel"];
  /** Approximate operations of all threads. Default: estimated from the threads and bound bytes. */
  readonly work?: number | undefined;
}

const ticketScratch = new BigUint64Array(1);

/**
 * Encodes a dispatch without waiting. Returns the ticket of its command buffer.
 *
 * @param operation the caller's operation, for errors
 * @throws {OrchardError} the error of the dylib's status.
 */
export function encode(context: MetalContext, operation: string, dispatch: Dispatch): number {
  const length = block.write(dispatch);
  const { label: name, operands, kernel } = dispatch;
  capture?.dispatched({ name, block: block.bytes.slice(0, length), operands, kernel });
  context.call(operation, context.native.orchard_dispatch_encode(block.bytes, length, ticketScratch));
  return Number(ticketScratch[0]);
}

const { dispatch: whole, binding, inline: inlined, threadgroupMemory: memory } = layouts;
const encoder = new TextEncoder();
const align = (bytes: number): number => (bytes + 7) & ~7;

/** Writes blocks of dispatches, which are the most frequent: `writeBlock` looks up each field by its name. */
class DispatchBlock {
  bytes = new Uint8Array(4096);
  private words = new Uint32Array(this.bytes.buffer);

  /** Returns the length of the block in bytes. */
  write({ pipeline, grid, gridKind, threadgroup, buffers, inline, threadgroupMemory, label, work = 0 }: Dispatch) {
    const bindings = whole.size;
    const inlines = bindings + buffers.length * binding.size;
    let end = inlines + inline.length * inlined.size;
    const payload = end;
    for (let at = 0; at < inline.length; at++) end += align(inline[at].bytes.byteLength);
    const memories = end;
    end += threadgroupMemory.length * memory.size;
    this.clear(end + 3 * label.length);
    const { offsets: at } = whole;
    this.words[at["size"] >> 2] = whole.size;
    this.words[at["version"] >> 2] = ABI_VERSION;
    this.wide(at["pipeline"], pipeline);
    this.size(at["grid"], grid);
    this.words[at["gridKind"] >> 2] = GridKind[gridKind];
    this.size(at["threadgroup"], threadgroup);
    this.span(at["bindings"], bindings, inlines - bindings);
    this.span(at["inlineBytes"], inlines, inline.length * inlined.size);
    this.span(at["threadgroupMemory"], memories, end - memories);
    this.wide(at["work"], Math.ceil(work));
    this.buffers(bindings, buffers);
    this.inline(inlines, payload, inline);
    for (let index = 0; index < threadgroupMemory.length; index++) {
      const start = memories + index * memory.size;
      this.words[(start + memory.offsets["index"]) >> 2] = threadgroupMemory[index].index;
      this.words[(start + memory.offsets["length"]) >> 2] = threadgroupMemory[index].length;
    }
    const text = this.text(end, label);
    this.span(at["label"], end, text);
    return end + text;
  }

  private clear(length: number): void {
    if (length > this.bytes.length) {
      this.bytes = new Uint8Array(align(2 * length));
      this.words = new Uint32Array(this.bytes.buffer);
    } else this.words.fill(0, 0, (length + 3) >> 2);
  }

  /** Writes 64 bits: a bigint would take longer than all other fields. */
  private wide(at: number, value: number): void {
    if (!Number.isInteger(value)) throw new RangeError(`expected an integer in this block, got ${value}`);
    this.words[at >> 2] = value; // modulo 2^32
    this.words[(at >> 2) + 1] = Math.floor(value / 2 ** 32);
  }

  private size(at: number, size: Size): void {
    const isNumber = typeof size === "number";
    this.words[at >> 2] = isNumber ? size : size[0];
    this.words[(at >> 2) + 1] = isNumber ? 1 : (size[1] ?? 1);
    this.words[(at >> 2) + 2] = isNumber ? 1 : (size[2] ?? 1);
  }

  private span(at: number, offset: number, length: number): void {
    this.words[at >> 2] = offset;
    this.words[(at >> 2) + 1] = length;
  }

  private buffers(start: number, buffers: readonly BoundBuffer[]): void {
    const { offsets: at } = binding;
    for (let index = 0; index < buffers.length; index++) {
      const from = start + index * binding.size;
      const { buffer, offset, length, index: place, access } = buffers[index];
      this.wide(from + at["buffer"], buffer);
      this.wide(from + at["offset"], offset);
      this.wide(from + at["length"], length);
      this.words[(from + at["index"]) >> 2] = place;
      this.words[(from + at["access"]) >> 2] = access;
    }
  }

  private inline(start: number, payload: number, inline: readonly InlineBytes[]): void {
    for (let index = 0; index < inline.length; index++) {
      const from = start + index * inlined.size;
      const bytes = asBytes(inline[index].bytes);
      this.words[(from + inlined.offsets["index"]) >> 2] = inline[index].index;
      this.span(from + inlined.offsets["bytes"], payload, bytes.length);
      this.bytes.set(bytes, payload);
      payload += align(bytes.length);
    }
  }

  /** Labels are short, so a loop is faster than an encoder unless there are other characters than ASCII's. */
  private text(at: number, text: string): number {
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code > 127) return encoder.encodeInto(text, this.bytes.subarray(at)).written;
      this.bytes[at + index] = code;
    }
    return text.length;
  }
}

const block = new DispatchBlock();

/** Returns a size in three dimensions. */
export function extents(size: Size): [number, number, number] {
  const [width, height = 1, depth = 1] = typeof size === "number" ? [size] : size;
  return [width, height, depth];
}

/** Returns the number of threads of a size. */
export const threadCount = (size: Size): number => extents(size).reduce((product, extent) => product * extent, 1);
