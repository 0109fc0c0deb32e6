/** Bytes that tensors live in, and where they are. */
import { ArgumentError, DisposedError, OutOfMemoryError } from "../core/errors.ts";
import { observer } from "../observe/observer.ts";
import { countScriptBlock, reserve } from "./reserve.ts";
import { keepSpareBlock, takeSpareBlock } from "./spare_blocks.ts";

/** Where memory is. The CPU accesses the host's at any time, and a Metal buffer once the device is done with it. */
export type MemoryDevice = "host" | "metal";

const storageModes = ["shared", "private"] as const;

/** Who reaches a Metal buffer: the CPU and the GPU, or the GPU alone. */
export type StorageMode = (typeof storageModes)[number];

/** One block of bytes. */
export interface Memory {
  readonly device: MemoryDevice;
  readonly byteLength: number;
  /** The mode of a Metal buffer; host memory has none. */
  readonly storage?: StorageMode;
  /** Whether the bytes are gone, with the device context that they were in or by what the caller did to them. */
  readonly isClosed?: boolean;
  /** Of closed memory, what became of it: a code, and the end of a sentence on a tensor. */
  readonly closing?: Closing;
  /** Whether a caller has the same memory, and may change it at any time. */
  readonly isBorrowed?: true;
  /** The bytes as the CPU sees them. Waits for the device where it still works on them. */
  hostBuffer(): ArrayBuffer;
  /** The bytes as a native function takes them. Waits as {@link hostBuffer} does. */
  hostBytes(): Uint8Array;
  /**
   * After the host has written the elements of shared memory: moves them to the mode of the hint, by default the
   * device's.
   */
  moveToHint?(storage?: StorageMode): void;
  /** Settles once {@link hostBuffer} would not wait; null where it would not now. */
  whenReady(): Promise<void> | null;
  /**
   * Frees the bytes at once; nothing may use them afterwards. Memory that is not released is freed by garbage
   * collection.
   */
  release(): void;
}

/** What became of memory: a code for programs, and what follows "a tensor float32[2] …". */
export interface Closing {
  readonly code: string;
  readonly reason: string;
  /** Of a tensor that is printed. */
  readonly summary: string;
}

/** Wishes for an allocation. */
export interface AllocationHint {
  /**
   * Of a Metal buffer; host memory has no choice. It holds until something else needs the elements: when the CPU reads
   * a private buffer, it moves to shared memory for good. Default: `"shared"`, or what
   * `metalContext().configure("storage", …)` said.
   */
  readonly storage?: StorageMode | undefined;
  readonly label?: string | undefined;
}

/** JavaScript's own memory: small blocks, and all of them where there is no native allocator. */
export class ScriptMemory implements Memory {
  readonly device = "host";
  private bytes: Uint8Array<ArrayBuffer>;
  private readonly isOwn: boolean;

  /** @param content a length, of a block with undefined contents; or a buffer */
  constructor(content: number | ArrayBuffer) {
    // A native function can't take a pointer to nothing, so an empty block has a byte. A small array is made ten times
    // as fast as a buffer, which is made when it is asked for.
    if (typeof content === "number") reserve(content);
    if (observer && typeof content === "number") observer.allocated(content, "script");
    this.isOwn = typeof content === "number";
    this.bytes = typeof content === "number" ? scriptBytes(content || 1) : new Uint8Array(content);
  }

  get byteLength(): number {
    return this.bytes.byteLength;
  }
  hostBuffer(): ArrayBuffer {
    return this.bytes.buffer;
  }
  hostBytes(): Uint8Array {
    return this.bytes;
  }
  whenReady(): null {
    return null;
  }
  release(): void {
    // A second call keeps nothing, and whoever comes too late finds no bytes. What is not kept is collected.
    if (this.isOwn) keepSpareBlock(this.bytes);
    this.bytes = noBytes;
  }
}

const noBytes = new Uint8Array(0);

/**
 * The memory of a caller's typed array. The caller may transfer the buffer, which leaves nothing of it here, or resize
 * it: whoever asks for the bytes then gets an error instead.
 */
export class BorrowedMemory implements Memory {
  readonly device = "host";
  readonly isBorrowed = true;
  /** From the buffer's start to the array's end. */
  readonly byteLength: number;
  private readonly bytes: Uint8Array<ArrayBuffer>;
  private readonly bufferBytes: number;

  constructor({
    buffer,
    byteOffset,
    byteLength,
  }: Pick<ArrayBufferView<ArrayBuffer>, "buffer" | "byteOffset" | "byteLength">) {
    this.byteLength = byteOffset + byteLength;
    this.bytes = new Uint8Array(buffer, 0, this.byteLength); // of length 0 once the buffer is shorter, or gone
    this.bufferBytes = buffer.byteLength;
  }

  get isClosed(): boolean {
    return this.bytes.byteLength < this.byteLength;
  }
  get closing(): Closing {
    const advice = "tensor(array) copies an array";
    if (this.bytes.buffer.detached)
      return {
        code: "detached",
        summary: "its buffer was transferred",
        reason:
          "lay in the memory of an array whose buffer was transferred (by postMessage or structuredClone, or because " +
          `its WebAssembly memory grew): it is not here any more. ${advice}`,
      };
    return {
      code: "resized",
      summary: "its buffer was resized",
      reason:
        `lay in the memory of an array whose buffer was resized, from ${this.bufferBytes} to ` +
        `${this.bytes.buffer.byteLength} bytes. ${advice}`,
    };
  }
  hostBuffer(): ArrayBuffer {
    return this.hostBytes().buffer;
  }
  hostBytes(): Uint8Array<ArrayBuffer> {
    if (this.bytes.byteLength >= this.byteLength) return this.bytes;
    const { code, reason } = this.closing;
    throw new DisposedError("storage", code, `a tensor ${reason}`);
  }
  whenReady(): null {
    return null;
  }
  release(): void {
    // It is the caller's.
  }
}

/**
 * Blocks of the host from this size on are counted one by one. With the cpu backend they come from its allocator, which
 * keeps their pages; smaller ones are JavaScript's own.
 */
export const LARGE = 1 << 16;

function scriptBytes(byteLength: number): Uint8Array<ArrayBuffer> {
  const spare = takeSpareBlock(byteLength);
  if (spare !== undefined) return spare;
  try {
    const bytes = new Uint8Array(byteLength);
    if (byteLength >= LARGE) countScriptBlock(bytes.buffer);
    return bytes;
  } catch (cause) {
    throw new OutOfMemoryError("allocate", "outOfMemory", noSuchBlock(byteLength), { cause });
  }
}

/** @internal JavaScript's arrays have 4 GB at most, of whatever memory. */
export const noSuchBlock = (byteLength: number): string => `JavaScript has no ${byteLength} bytes in one block`;

/**
 * Allocates host memory; null for a block that it leaves to JavaScript. The cpu backend installs one for large blocks.
 */
export type HostAllocator = (byteLength: number) => Memory | null;

let nativeAllocator: HostAllocator | undefined;

export function installHostAllocator(allocator: HostAllocator | undefined): void {
  nativeAllocator = allocator;
}

/** Host memory with undefined contents. @throws {OutOfMemoryError} over the memory limit. */
export function allocateHost(byteLength: number): Memory {
  return nativeAllocator?.(byteLength) ?? new ScriptMemory(byteLength);
}

/** @internal @throws {ArgumentError} for a mode that there is not. */
export function checkStorage(operation: string, storage: StorageMode | undefined): StorageMode | undefined {
  if (storage === undefined || storageModes.includes(storage)) return storage;
  throw new ArgumentError(
    operation,
    "unknownStorage",
    `expected storage to be one of ${storageModes.join(", ")}, got ${String(storage)}`,
  );
}
