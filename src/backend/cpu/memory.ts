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
   * Frees the block immediately; a second call has no effect. The buffer must not be used afterwards, since its memory
   * may belong to another block.
   */
  release(): void {
    check(this.native, this.native.orchard_cpu_release(this.context), "release");
  }
}

/**
 * Allocates a block of `bytes` bytes (at least 1), aligned to 64, with undefined contents. JavaScript's garbage
 * collector counts its bytes and frees it through a native function, on any thread, once the buffer is unreachable.
 *
 * @throws {OutOfMemoryError} over the memory limit, or if the machine is out of memory.
 */
export function allocateBlock(native: Native, bytes: number, operation: string): NativeBlock {
  check(native, native.orchard_cpu_allocate(bytes, out), operation);
  return new NativeBlock(native, out[0] as Pointer, bytes, out[1] as Pointer);
}
