import { type Pointer, toArrayBuffer } from "bun:ffi";
import { OutOfMemoryError } from "../../core/errors.ts";
import { noSuchBlock } from "../../tensor/memory.ts";
import type { Native } from "./loader.ts";
import { check } from "./status.ts";

const out = new Float64Array(2);
let collector: Pointer | undefined;

/**
 * Bun's types lack the last two parameters: the deallocator, which runs when the buffer is collected, and its argument.
 */
const wrap: (address: Pointer, offset: number, length: number, context: Pointer, deallocator: Pointer) => ArrayBuffer =
  toArrayBuffer;

/** A block of the dylib's allocator as an ArrayBuffer. */
export class NativeBlock {
  /** The buffer. It keeps the block alive: hold a reference to it as long as `release` may be called. */
  readonly buffer: ArrayBuffer;
  /** A view of the buffer. */
  readonly bytes: Uint8Array;
  readonly native: Native;
  private isReleased = false;
  private readonly context: Pointer;

  constructor(native: Native, address: Pointer, bytes: number, context: Pointer) {
    collector ??= native.orchard_cpu_collector() as Pointer;
    this.native = native;
    this.context = context;
    try {
      this.buffer = wrap(address, 0, bytes, context, collector);
      this.bytes = new Uint8Array(this.buffer);
    } catch (cause) {
      native.orchard_cpu_release(context);
      throw new OutOfMemoryError("allocate", "outOfMemory", noSuchBlock(bytes), { cause });
    }
  }

  /**
   * Frees the block immediately; a second call has no effect. The buffer must not be used afterwards, since its memory
   * may belong to another block.
   */
  release(): void {
    if (this.isReleased) return;
    this.isReleased = true;
    check(this.native, this.native.orchard_cpu_release(this.context), "release");
    keepReleased(this);
  }

  /** Allocates a released block again with undefined contents. Returns whether its memory was still free. */
  retake(): boolean {
    if (this.buffer.detached || this.native.orchard_cpu_retake(this.context) !== 1) return false;
    this.isReleased = false;
    return true;
  }
}

/**
 * Released blocks by size. A new ArrayBuffer takes microseconds, and JavaScriptCore counts its bytes until a collection
 * even if they were released, so a loop of 2 MB results would collect garbage at every 18th call. A block's memory may
 * be reused while the block is here: then it can't be retaken.
 */
const released = new Map<number, NativeBlock[]>();
let releasedBytes = 0;
/** Maximum bytes of the blocks here. They are few beside the free memory that the dylib keeps. */
const MOST_RELEASED_BYTES = 2 ** 26;

function keepReleased(block: NativeBlock): void {
  const { byteLength } = block.bytes;
  if (byteLength === 0 || byteLength > MOST_RELEASED_BYTES / 2) return; // 0: its buffer was transferred
  if (releasedBytes + byteLength > MOST_RELEASED_BYTES) dropReleased(); // sizes that are no longer used
  releasedBytes += byteLength;
  const same = released.get(byteLength);
  if (same === undefined) released.set(byteLength, [block]);
  else same.push(block);
}

function dropReleased(): void {
  released.clear();
  releasedBytes = 0;
}

/** Returns a released block of this size whose memory is still free, or undefined. */
function retakeReleased(native: Native, bytes: number): NativeBlock | undefined {
  const same = released.get(bytes);
  for (let block = same?.pop(); block !== undefined; block = same?.pop()) {
    releasedBytes -= bytes;
    if (block.native === native && block.retake()) return block;
  }
  return undefined;
}

/**
 * Allocates a block of `bytes` bytes (at least 1), aligned to 64, with undefined contents, or retakes a released one.
 * JavaScript's garbage collector counts its bytes and frees it through a native function, on any thread, once the
 * buffer is unreachable.
 *
 * @throws {OutOfMemoryError} over the memory limit, or if the machine is out of memory.
 */
export function allocateBlock(native: Native, bytes: number, operation: string): NativeBlock {
  const retaken = retakeReleased(native, bytes);
  if (retaken !== undefined) return retaken;
  check(native, native.orchard_cpu_allocate(bytes, out), operation);
  return new NativeBlock(native, out[0] as Pointer, bytes, out[1] as Pointer);
}
