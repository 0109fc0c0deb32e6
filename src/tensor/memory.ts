/** The memory of tensors. */
import { ArgumentError, DisposedError, OutOfMemoryError } from "../core/errors.ts";
import { observer } from "../observe/observer.ts";
import { countScriptBlock, reserve } from "./reserve.ts";
import { keepSpareBlock, takeSpareBlock } from "./spare_blocks.ts";

/** The location of memory. The CPU can access host memory at any time, and a Metal buffer once the device is done. */
export type MemoryDevice = "host" | "metal";

const storageModes = ["shared", "private"] as const;

/** Whether a Metal buffer is accessible to the CPU and the GPU, or only to the GPU. */
export type StorageMode = (typeof storageModes)[number];

/** One block of bytes. */
export interface Memory {
  readonly device: MemoryDevice;
  readonly byteLength: number;
  /** The storage mode of a Metal buffer; undefined for host memory. */
  readonly storage?: StorageMode;
  /**
   *  Whether the memory is gone because its device context was closed or the caller transferred or resized its buffer.
   */
  readonly isClosed?: boolean;
  /** Why closed memory is gone. */
  readonly closing?: Closing;
  /** Whether the caller shares the memory and may change it at any time. */
  readonly isBorrowed?: true;
  /** Whether the memory has no elements: see `abstract.ts`. */
  readonly isAbstract?: boolean;
  /** Whether the memory belongs to a batched tensor: see `batched.ts`. */
  readonly isBatched?: boolean;
  /** Returns the bytes for the CPU. Waits for the device if it still uses them. */
  hostBuffer(): ArrayBuffer;
  /** Returns the bytes for native functions. Waits like {@link hostBuffer}. */
  hostBytes(): Uint8Array;
  /**
   * Moves shared memory to the hinted storage mode after the host has written its elements. Default: the device's mode.
   */
  moveToHint?(storage?: StorageMode): void;
  /** Settles when {@link hostBuffer} no longer needs to wait; null if it need not wait now. */
  whenReady(): Promise<void> | null;
  /** Frees the memory immediately; it must not be used afterwards. Unreleased memory is freed by garbage collection. */
  release(): void;
}

/** Why memory is gone: a code for programs, and the text that follows "a tensor float32[2] …" in messages. */
export interface Closing {
  readonly code: string;
  readonly reason: string;
  /** Text for printing a tensor. */
  readonly summary: string;
}

/** Preferences for an allocation. */
export interface AllocationHint {
  /**
   * Storage mode of a Metal buffer; no effect on host memory. When the CPU reads a private buffer, it moves to shared
   * memory permanently. Default: `"shared"`, or the mode set by `metalContext().configure("storage", …)`.
   */
  readonly storage?: StorageMode | undefined;
  readonly label?: string | undefined;
}

/** Memory allocated by JavaScript: small blocks, and all blocks if there is no native allocator. */
export class ScriptMemory implements Memory {
  readonly device = "host";
  private bytes: Uint8Array<ArrayBuffer>;
  private readonly isOwn: boolean;

  /** @param content the length of a block with undefined contents, or a buffer */
  constructor(content: number | ArrayBuffer) {
    // An empty block has one byte, since native functions need a valid pointer. A small array is created ten times as
    // fast as a buffer, so the buffer is created on demand.
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
    // A second call does nothing, and later readers find no bytes. Blocks that are not kept are garbage collected.
    if (this.isOwn) keepSpareBlock(this.bytes);
    this.bytes = noBytes;
  }
}

const noBytes = new Uint8Array(0);

/**
 * The memory of a caller's typed array. If the caller transfers or resizes the buffer, reading the bytes throws an
 * error.
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
    this.bytes = new Uint8Array(buffer, 0, this.byteLength); // has length 0 once the buffer is shorter or detached
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
          "used the memory of an array whose buffer was transferred (by postMessage or structuredClone, or because " +
          `its WebAssembly memory grew), so its data is gone. ${advice}`,
      };
    return {
      code: "resized",
      summary: "its buffer was resized",
      reason:
        `used the memory of an array whose buffer was resized, from ${this.bufferBytes} to ` +
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
    // The caller owns the memory.
  }
}

/**
 * Host blocks of at least this size are counted individually. With the cpu backend they come from its allocator, which
 * caches their pages; smaller ones are allocated by JavaScript.
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

/** @internal JavaScript's arrays are limited to 4 GB, in any memory. */
export const noSuchBlock = (byteLength: number): string => `JavaScript can't allocate ${byteLength} bytes in one block`;

/**
 * Allocates host memory, or returns null to leave a block to JavaScript. The cpu backend installs one for large blocks.
 */
export type HostAllocator = (byteLength: number) => Memory | null;

let nativeAllocator: HostAllocator | undefined;

export function installHostAllocator(allocator: HostAllocator | undefined): void {
  nativeAllocator = allocator;
}

/** Allocates host memory with undefined contents. @throws {OutOfMemoryError} over the memory limit. */
export function allocateHost(byteLength: number): Memory {
  return nativeAllocator?.(byteLength) ?? new ScriptMemory(byteLength);
}

/** @internal Checks a storage mode. @throws {ArgumentError} for an unknown mode. */
export function checkStorage(operation: string, storage: StorageMode | undefined): StorageMode | undefined {
  if (storage === undefined || storageModes.includes(storage)) return storage;
  throw new ArgumentError(
    operation,
    "unknownStorage",
    `expected storage to be one of ${storageModes.join(", ")}, got ${String(storage)}`,
  );
}
