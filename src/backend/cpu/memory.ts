import { type Pointer, toArrayBuffer } from "bun:ffi";
import { OutOfMemoryError } from "../../core/errors.ts";
import { noSuchBlock } from "../../tensor/memory.ts";
import type { Native } from "./loader.ts";
import { check } from "./status.ts";

const out = new Float64Array(2);
let collector: Pointer | undefined;

/** Bun's types leave out the last two: what is called, with the first of them, when the buffer is collected. */
const wrap: (address: Pointer, offset: number, length: number, context: Pointer, deallocator: Pointer) => ArrayBuffer =
  toArrayBuffer;

/** Memory of the dylib's allocator as an ArrayBuffer. */
export class NativeBlock {
  /** It keeps the block's context alive, so whoever can release the block must hold it too. */
  readonly buffer: ArrayBuffer;
  private readonly native: Native;
  private readonly context: Pointer;

  constructor(native: Native, address: Pointer, bytes: number, context: Pointer) {
    collector ??= native.orchard_cpu_collector() as Pointer;
    this.native = native;
    this.context = context;
    try {
      this.buffer = wrap(address, 0, bytes, context, collector);
    } catch (cause) {
      this.release();
      throw new OutOfMemoryError("allocate", "outOfMemory", noSuchBlock(bytes), { cause });
    }
  }

  /**
   * Gives the bytes back at once; a second call does nothing. The buffer must not be used any more: its bytes may be
   * another block's.
   */
  release(): void {
    check(this.native, this.native.orchard_cpu_release(this.context), "release");
  }
}

/**
 * A block of `bytes` bytes (at least 1), aligned to 64, with undefined contents. The collector of JavaScript counts its
 * bytes and gives it back, by a native function and on a thread of its choice, once the buffer is unreachable.
 *
 * @throws {OutOfMemoryError} over the memory limit, or where the machine has none left.
 */
export function allocateBlock(native: Native, bytes: number, operation: string): NativeBlock {
  check(native, native.orchard_cpu_allocate(bytes, out), operation);
  return new NativeBlock(native, out[0] as Pointer, bytes, out[1] as Pointer);
}
