import { DisposedError } from "../core/errors.ts";
import { type DType, dtypeFacts, type StorageArray } from "./dtype.ts";
import type { Closing, Memory } from "./memory.ts";

let created = 0;

const inClosedContext: Closing = {
  code: "closed",
  summary: "its Metal context was closed",
  reason: "lay in a Metal context that was closed; read its data before close()",
};

/**
 * A check of what contents are computed from, by a device, whose outcome is known later. Whoever reads the contents
 * gets the error.
 */
export interface DeferredCheck {
  /** Whether nothing was wrong: then nobody needs to remember it. */
  readonly hasPassed: boolean;
  /** The error of what was wrong, if anything was. Called after the device is done with the contents. */
  outcome(): unknown;
}

const NO_CHECKS: readonly DeferredCheck[] = [];

/**
 * The memory behind one or more tensors. It counts its owners (tensors and what autograd has saved): when the last one
 * releases it, the memory is freed at once. Storages that are never released are freed by garbage collection.
 */
export class Storage {
  /** Counts changes in place, so that autograd notices that what it saved has changed. */
  version = 0;
  private owners = 0;
  private current: Memory | null;
  private array_: ArrayLike<number | bigint> | null = null;
  private arrayDType: DType | null = null;
  private lostBy: unknown;
  private pendingChecks = NO_CHECKS;
  /** Later storages have higher ones. */
  readonly serial = created++;

  constructor(memory: Memory) {
    this.current = memory;
  }

  /** @throws {DisposedError} @throws what {@link lose} was given. */
  get memory(): Memory {
    if (this.lostBy !== undefined) throw this.lostBy;
    if (this.current === null) throw new DisposedError("storage", "disposed", "its memory was freed by dispose()");
    return this.current;
  }

  /** Why the contents were never computed, as far as is known; undefined where they were. */
  get failure(): unknown {
    return this.lostBy;
  }

  get isReleased(): boolean {
    return this.current === null;
  }

  /** Whether the contents are gone: with the device context that they were in, or by what their owner did. */
  get isClosed(): boolean {
    return this.current?.isClosed === true;
  }

  /** The error of whoever uses a tensor whose contents are gone. */
  closedError(operation: string, tensor: string): DisposedError {
    const { code, reason } = this.closing;
    return new DisposedError(operation, code, `a tensor ${tensor} ${reason}`);
  }

  /** What became of contents that are gone. */
  get closing(): Closing {
    return this.current?.closing ?? inClosedContext;
  }

  /** Whether a caller has the same memory, and may change it at any time. */
  get isBorrowed(): boolean {
    return this.current?.isBorrowed === true;
  }

  /** The contents were never computed and can't be: reading them throws the cause. */
  lose(cause: unknown): void {
    this.lostBy = cause;
  }

  /** What the contents depend on and is not known to be right. */
  get checks(): readonly DeferredCheck[] {
    return this.pendingChecks;
  }

  /** The contents were computed from what is checked later. @param replace whether all of them were */
  dependOn(checks: readonly DeferredCheck[], replace = false): void {
    if (replace || this.pendingChecks.length === 0) this.pendingChecks = checks;
    else this.pendingChecks = [...new Set([...this.pendingChecks, ...checks])];
  }

  /** Once the device is done: loses the contents where a check of what they were computed from has failed. */
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

  /** How many storages were made so far: those made from now on have this serial, or a higher one. */
  static get nextSerial(): number {
    return created;
  }

  /** The contents now lie in other memory; the old one is freed. */
  moveTo(memory: Memory): void {
    this.swap(memory).release();
  }

  /** Replaces the memory, and returns the former one, which is now the caller's. */
  swap(memory: Memory): Memory {
    const old = this.memory;
    this.current = memory;
    this.array_ = null;
    return old;
  }

  /** The elements as stored, over the whole memory. Waits for the device where it works on them. */
  array<D extends DType>(dtype: D): StorageArray<D> {
    const { memory } = this;
    let buffer = memory.hostBuffer();
    // the device failed, and what it lost was computed elsewhere
    if (this.memory !== memory) buffer = this.memory.hostBuffer();
    this.settle();
    const cached = this.array_ as StorageArray<D> | null;
    if (cached !== null && this.arrayDType === dtype && cached.buffer === buffer) return cached;
    const { array: ArrayOf, bytes } = dtypeFacts[dtype];
    const byteLength = Math.min(buffer.byteLength, this.memory.byteLength); // a caller's buffer may be longer
    const array = new ArrayOf(buffer, 0, Math.floor(byteLength / bytes)) as StorageArray<D>;
    this.array_ = array;
    this.arrayDType = dtype;
    return array;
  }

  /** The bytes as a native function takes them. Waits for the device where it works on them. */
  hostBytes(): Uint8Array {
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
