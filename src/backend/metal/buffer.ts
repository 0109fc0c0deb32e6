import { ArgumentError, DisposedError } from "../../core/errors.ts";
import { either, flag, text } from "../../core/kinds.ts";
import { named, operand, optionalOperand, parameters, reading } from "../../core/parameters.ts";
import { observer } from "../../observe/observer.ts";
import type { StorageMode } from "../../tensor/memory.ts";
import { reserve } from "../../tensor/reserve.ts";
import { memory } from "../../tensor/usage.ts";
import { BUFFER_ZERO, Storage } from "./abi.ts";
import { emptyStruct, readStruct, writeBlock } from "./block.ts";
import { aContext, type MetalContext, metalContext } from "./context.ts";
import { aNumericArray, anArrayType, storageMode, wholeNumber } from "./kinds.ts";
import { layouts } from "./layouts.ts";

/** A typed array with a corresponding Metal type. */
export type NumericArray =
  | Float32Array
  | Float16Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

export type NumericArrayConstructor<T extends NumericArray> = {
  new (buffer: ArrayBuffer): T;
  new (length: number): T;
  readonly BYTES_PER_ELEMENT: number;
  readonly name: string;
};

/** Options of a {@link DeviceBuffer}. */
export interface DeviceBufferOptions {
  /** `"shared"` (accessible to the CPU) or `"private"` (only to the GPU). Default: the context's. */
  storage?: StorageMode;
  /** A name for messages, captures and the checker. */
  label?: string;
  /** Fill with zeros. Otherwise the contents are undefined. */
  zero?: boolean;
  /** The context. Default: {@link metalContext}. */
  context?: MetalContext;
}

// Frees buffers that were not disposed of, when they are collected. `using` and `dispose` free immediately.
const forgotten = new FinalizationRegistry<{ context: MetalContext; handle: number }>(({ context, handle }) => {
  if (!context.isClosed) context.native.orchard_release(handle);
});

const bufferParameters = parameters("DeviceBuffer", {
  content: operand(either(wholeNumber, aNumericArray)),
  storage: named(storageMode),
  label: named(text, "buffer"),
  zero: named(flag, false),
  context: named(aContext),
});
const writeParameters = parameters("DeviceBuffer.write", {
  content: operand(aNumericArray),
  byteOffset: optionalOperand(wholeNumber),
});
const readParameters = parameters("DeviceBuffer.read", {
  type: operand(anArrayType),
  byteOffset: optionalOperand(wholeNumber),
  length: optionalOperand(wholeNumber),
});
const fillParameters = parameters("DeviceBuffer.fill", {
  byte: operand(wholeNumber),
  byteOffset: optionalOperand(wholeNumber),
  byteLength: optionalOperand(wholeNumber),
});
const copyParameters = parameters("DeviceBuffer.copyTo", {
  target: operand({ expected: "a DeviceBuffer", parse: (value) => (isBuffer(value) ? value : undefined) }),
  from: named(wholeNumber, 0),
  to: named(wholeNumber, 0),
  byteLength: named(wholeNumber),
});
const moveParameters = parameters("DeviceBuffer.moveTo", { storage: operand(storageMode) });

const isBuffer = (value: unknown): value is DeviceBuffer => value instanceof DeviceBuffer;

/**
 * A buffer in device memory.
 *
 * @example
 * using x = new DeviceBuffer(new Float32Array([1, 2, 3]));
 * x.read(Float32Array); // Float32Array [1, 2, 3]
 *
 * @throws {OutOfMemoryError} if it would exceed the memory limit.
 */
export class DeviceBuffer implements Disposable {
  readonly context: MetalContext;
  /** Length in bytes. */
  readonly byteLength: number;
  readonly label: string;
  private readonly ownHandle: number;
  private disposed = false;

  /** @param content the length in bytes, or an array to copy. */
  constructor(content: number | NumericArray, options?: DeviceBufferOptions);
  constructor(...values: unknown[]) {
    const { content, ...options } = bufferParameters(values);
    this.context = options.context ?? metalContext();
    this.label = options.label;
    this.byteLength = typeof content === "number" ? content : content.byteLength;
    if (this.byteLength < 1) {
      throw new ArgumentError(
        "DeviceBuffer",
        "invalidArgument",
        `expected a length of at least 1 byte, got ${this.byteLength}`,
      );
    }
    reserve(this.byteLength);
    const { native, handle } = this.context;
    const block = writeBlock(layouts.bufferOptions, {
      length: this.byteLength,
      storage: options.storage ? Storage[options.storage] : Storage.default,
      flags: options.zero ? BUFFER_ZERO : 0,
      label: this.label,
    });
    const out = new BigUint64Array(1);
    this.context.call(`DeviceBuffer ${this.label}`, native.orchard_buffer_create(handle, block, block.length, out));
    this.ownHandle = Number(out[0]);
    forgotten.register(this, { context: this.context, handle: this.ownHandle }, this);
    if (observer) observer.allocated(this.byteLength, this.storage, memory().metal, this.label);
    if (typeof content !== "number") this.writeOrDispose(content);
  }

  private writeOrDispose(content: NumericArray): void {
    try {
      this.write(content);
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  /** @internal The handle for the dylib. @throws {DisposedError} */
  get handle(): number {
    if (this.disposed) throw new DisposedError(`DeviceBuffer ${this.label}`, "disposed", "it was used after dispose()");
    return this.ownHandle;
  }

  /** The current storage mode. */
  get storage(): StorageMode {
    return this.info().storage === Storage.private ? "private" : "shared";
  }

  private info() {
    const bytes = emptyStruct(layouts.bufferInfo);
    this.context.call(
      `DeviceBuffer ${this.label}`,
      this.context.native.orchard_buffer_info_get(this.handle, bytes, bytes.length),
    );
    return readStruct<"length" | "allocated" | "lastTicket" | "storage" | "retainCount">(layouts.bufferInfo, bytes);
  }

  /** Copies an array to a byte offset. Waits for work that uses the buffer. */
  write(content: NumericArray, byteOffset?: number): void;
  write(...values: unknown[]): void {
    const { content, byteOffset = 0 } = writeParameters(values);
    const { native } = this.context;
    this.context.call(
      `write ${this.label}`,
      native.orchard_buffer_write(this.handle, byteOffset, content, content.byteLength),
    );
  }

  /** Returns a copy of the contents. Blocks until the work that uses the buffer is done. @see {@link readAsync} */
  read<T extends NumericArray>(type: NumericArrayConstructor<T>, byteOffset?: number, length?: number): T;
  read(...values: unknown[]): NumericArray {
    const { type, byteOffset = 0, length = this.elementsFrom(type, byteOffset) } = readParameters(values);
    const result = reading("DeviceBuffer.read", () => new type(length));
    this.context.call(
      `read ${this.label}`,
      this.context.native.orchard_buffer_read(this.handle, byteOffset, result, result.byteLength),
    );
    return result;
  }

  /** As {@link read}, but without blocking the event loop. */
  async readAsync<T extends NumericArray>(
    type: NumericArrayConstructor<T>,
    byteOffset?: number,
    length?: number,
  ): Promise<T> {
    readParameters([type, byteOffset, length]);
    this.context.commit();
    await this.context.finished(this.info().lastTicket);
    return this.read(type, byteOffset, length);
  }

  private elementsFrom(type: NumericArrayConstructor<NumericArray>, byteOffset: number): number {
    return Math.max(0, Math.floor((this.byteLength - byteOffset) / type.BYTES_PER_ELEMENT));
  }

  /** Sets bytes on the device, in order with dispatches. */
  fill(byte: number, byteOffset?: number, byteLength?: number): void;
  fill(...values: unknown[]): void {
    const { byte, byteOffset = 0, byteLength = Math.max(0, this.byteLength - byteOffset) } = fillParameters(values);
    const ticket = new BigUint64Array(1);
    this.context.call(
      `fill ${this.label}`,
      this.context.native.orchard_buffer_fill(this.handle, byteOffset, byteLength, byte & 0xff, ticket),
    );
  }

  /** Copies bytes to another buffer on the device, in order with dispatches. */
  copyTo(target: DeviceBuffer, options?: { from?: number; to?: number; byteLength?: number }): void;
  copyTo(...values: unknown[]): void {
    const { target, from, to, byteLength = Math.max(0, this.byteLength - from) } = copyParameters(values);
    const ticket = new BigUint64Array(1);
    const status = this.context.native.orchard_buffer_copy(this.handle, from, target.handle, to, byteLength, ticket);
    this.context.call(`copy ${this.label} to ${target.label}`, status);
  }

  /** Changes the storage mode. If it differs, the buffer is copied once on the device. */
  moveTo(storage: StorageMode): void {
    moveParameters([storage]);
    this.context.call(`move ${this.label}`, this.context.native.orchard_buffer_hint(this.handle, Storage[storage]));
  }

  /** Frees the memory once the device is done with it. A second call has no effect. */
  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    forgotten.unregister(this);
    if (!this.context.isClosed) this.context.native.orchard_release(this.ownHandle);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
