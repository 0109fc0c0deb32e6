import { DisposedError } from "../core/errors.ts";
import { capture } from "../observe/capture.ts";
import { type DType, dtypeFacts, type StorageArray } from "./dtype.ts";
import type { Closing, Memory } from "./memory.ts";

let created = 0;

const inClosedContext: Closing = {
  code: "closed",
  summary: "its Metal context was closed",
  reason: "was in a Metal context that was closed; read its data before close()",
};

/**
 * A check by a device of the inputs of a computation, whose outcome is known later. If it fails, reading the results
 * throws the error.
 */
export interface DeferredCheck {
  /** Whether the check is known to have passed and can be forgotten. */
  readonly hasPassed: boolean;
  /** Returns the error if the check failed. Called after the device is done with the contents. */
  outcome(): unknown;
}

const NO_CHECKS: readonly DeferredCheck[] = [];

/**
 * The memory of one or more tensors. It counts its owners (tensors, and values that autograd has saved); when the last
 * one releases it, the memory is freed immediately. Storages that are never released are freed by garbage collection.
 */
export class Storage {
  /** Counts in-place changes, so that autograd can detect changes of saved values. */
  version = 0;
  private owners = 0;
  private current: Memory | null;
  private array_: ArrayLike<number | bigint> | null = null;
  private arrayDType: DType | null = null;
  private lostBy: unknown;
  private pendingChecks = NO_CHECKS;
  /** A serial number that increases with each new storage. */
  readonly serial = created++;

  constructor(memory: Memory) {
    this.current = memory;
  }

  /** The memory. @throws {DisposedError} @throws the cause passed to {@link lose} */
  get memory(): Memory {
    if (this.lostBy !== undefined) throw this.lostBy;
    if (this.current === null) throw new DisposedError("storage", "disposed", "its memory was freed by dispose()");
    return this.current;
  }

  /** The cause if the contents are known to be lost; else undefined. */
  get failure(): unknown {
    return this.lostBy;
  }

  get isReleased(): boolean {
    return this.current === null;
  }

  /** Whether the contents are gone, because the device context was closed or the owner changed the buffer. */
  get isClosed(): boolean {
    return this.current?.isClosed === true;
  }

  /** Returns the error for using a tensor whose contents are gone. */
  closedError(operation: string, tensor: string): DisposedError {
    const { code, reason } = this.closing;
    return new DisposedError(operation, code, `a tensor ${tensor} ${reason}`);
  }

  /** Why the contents are gone. */
  get closing(): Closing {
    return this.current?.closing ?? inClosedContext;
  }

  /** Whether the caller shares the memory and may change it at any time. */
  get isBorrowed(): boolean {
    return this.current?.isBorrowed === true;
  }

  /** Whether the storage has a size but no elements: see `abstract.ts`. */
  get isAbstract(): boolean {
    return this.current?.isAbstract === true;
  }

  /** The memory, if it belongs to a batched tensor: see `batched.ts`. */
  get batch(): Memory | undefined {
    return this.current?.isBatched === true ? this.current : undefined;
  }

  /** Marks the contents as lost, so that reading them throws `cause`. */
  lose(cause: unknown): void {
    this.lostBy = cause;
  }

  /** The pending checks that the contents depend on. */
  get checks(): readonly DeferredCheck[] {
    return this.pendingChecks;
  }

  /** Adds pending checks on which the contents depend. @param replace whether all contents are new */
  dependOn(checks: readonly DeferredCheck[], replace = false): void {
    const open = replace ? NO_CHECKS : this.pendingChecks.filter(({ hasPassed }) => !hasPassed);
    this.pendingChecks = open.length === 0 ? checks : [...new Set([...open, ...checks])];
  }

  /** Once the device is done, marks the contents as lost if a check of their inputs has failed. */
  private settle(): void {
    if (this.pendingChecks.length === 0) return;
    for (const check of this.pendingChecks) {
      const error = check.outcome();
      if (error === undefined) continue;
      this.lose(error);
      throw error;
    }
    this.pendingChecks = NO_CHECKS;
  }

  /** The serial number of the next storage. */
  static get nextSerial(): number {
    return created;
  }

  /** Replaces the memory with one that has the same contents, and frees the old one. */
  moveTo(memory: Memory): void {
    this.swap(memory).release();
  }

  /** Replaces the memory and returns the old one, which the caller then owns. */
  swap(memory: Memory): Memory {
    const old = this.memory;
    this.current = memory;
    this.array_ = null;
    return old;
  }

  /** Returns the stored elements of the whole memory, two per complex number. Waits for the device if it uses them. */
  array<D extends DType>(dtype: D): StorageArray<D> {
    capture?.accessed(this);
    const { memory } = this;
    let buffer = memory.hostBuffer();
    // the device failed, and its lost results were computed elsewhere
    if (this.memory !== memory) buffer = this.memory.hostBuffer();
    this.settle();
    const cached = this.array_ as StorageArray<D> | null;
    if (cached !== null && this.arrayDType === dtype && cached.buffer === buffer) return cached;
    const { array: ArrayOf } = dtypeFacts[dtype];
    const byteLength = Math.min(buffer.byteLength, this.memory.byteLength); // a caller's buffer may be longer
    const array = new ArrayOf(buffer, 0, Math.floor(byteLength / ArrayOf.BYTES_PER_ELEMENT)) as StorageArray<D>;
    this.array_ = array;
    this.arrayDType = dtype;
    return array;
  }

  /** Returns the bytes for native functions. Waits for the device if it uses them. */
  hostBytes(): Uint8Array {
    capture?.accessed(this);
    const { memory } = this;
    let bytes = memory.hostBytes();
    if (this.memory !== memory) bytes = this.memory.hostBytes();
    this.settle();
    return bytes;
  }

  retain(): void {
    this.owners++;
  }

  release(): void {
    if (--this.owners > 0 || this.current === null) return;
    const memory = this.current;
    this.current = null;
    this.array_ = null;
    memory.release();
  }
}
