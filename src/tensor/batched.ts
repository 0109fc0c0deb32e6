/**
 * Batched tensors: inside of `vmap`, a tensor shows one example, and its storage has an axis with all examples. Views
 * of it share the storage, so they are batched too.
 */
import { ContextVariable } from "../core/context.ts";
import { OrchardError } from "../core/errors.ts";
import { bytesOf } from "./dtype.ts";
import type { Memory } from "./memory.ts";
import { Storage } from "./storage.ts";
import { Tensor } from "./tensor.ts";

/** How random numbers are drawn inside of `vmap`: see its option. */
export type Randomness = "error" | "same" | "different";

/** One running `vmap`. */
export interface BatchLevel {
  /** Later levels have higher ids. The levels of a tensor are sorted by id, and unwrapped from the latest on. */
  readonly id: number;
  /** The number of examples. */
  readonly size: number;
  readonly randomness: Randomness;
  /** Storages with a lower serial number were created outside of this `vmap`. */
  readonly firstSerial: number;
}

/** @internal The running `vmap`s, outermost first. */
export const batchLevels = new ContextVariable<readonly BatchLevel[]>([]);

/** A use of values that differ between the examples of `vmap`. */
export class VmapError extends OrchardError {
  override readonly name = "VmapError";
}

/** The memory of a batched storage: the memory of another storage, plus the stride of the axis of examples. */
export class BatchedMemory implements Memory {
  readonly device = "host";
  readonly isBatched = true;

  constructor(
    readonly base: Storage,
    readonly level: BatchLevel,
    /** The distance between examples in bytes, since views may have another dtype. */
    readonly step: number,
    /** The bytes of all examples. */
    readonly byteLength: number,
  ) {
    base.retain();
  }

  get isAbstract(): boolean {
    return this.base.isAbstract;
  }
  get isClosed(): boolean {
    return this.base.isClosed;
  }
  hostBuffer(): ArrayBuffer {
    throw new VmapError(
      "vmap",
      "readsValues",
      "the elements of a batched tensor can't be read: they differ between the examples. Use where() in place of " +
        "control flow on values, or return the tensor and read it outside of vmap",
    );
  }
  hostBytes(): Uint8Array {
    return new Uint8Array(this.hostBuffer());
  }
  whenReady(): null {
    this.hostBuffer();
    return null;
  }
  release(): void {
    this.base.release();
  }
}

/** @internal Returns the batch of a tensor at its latest level, or undefined if it has none. */
export const batchOf = ({ storage }: Tensor): BatchedMemory | undefined => storage.batch as BatchedMemory | undefined;

/** @internal Returns the levels at which a tensor is batched, latest first. */
export function levelsOf({ storage }: Tensor): readonly BatchLevel[] {
  if (!storage.batch) return NO_LEVELS;
  const levels: BatchLevel[] = [];
  for (let memory: Memory | undefined = storage.batch; memory; memory = (memory as BatchedMemory).base.batch)
    levels.push((memory as BatchedMemory).level);
  return levels;
}
const NO_LEVELS: readonly BatchLevel[] = [];

/** @internal Returns an example of a tensor as a batched tensor, a view: the axis with the examples disappears. */
export function batched(x: Tensor, axis: number, level: BatchLevel): Tensor {
  const last = batchOf(x)?.level;
  if (last && last.id > level.id) return batched(batched(allExamples(x), axis + 1, level), 0, last);
  const memory = new BatchedMemory(x.storage, level, x.strides[axis] * bytesOf(x.dtype), x.storage.memory.byteLength);
  return new Tensor(new Storage(memory), x.dtype, x.shape.toSpliced(axis, 1), x.strides.toSpliced(axis, 1), x.offset);
}

/** @internal Returns a tensor with all examples of a level along an axis, a view. It must be batched at the level. */
export function unbatched(x: Tensor, axis: number, level: BatchLevel): Tensor {
  const last = batchOf(x)!.level;
  if (last !== level) return batched(unbatched(allExamples(x), axis + 1, level), 0, last);
  return allExamples(x, axis);
}

/** @internal Returns the tensor with all examples of its latest level along an axis: a view. */
export function allExamples(x: Tensor, axis = 0): Tensor {
  const { base, level, step } = batchOf(x)!;
  const shape = x.shape.toSpliced(axis, 0, level.size);
  return new Tensor(base, x.dtype, shape, x.strides.toSpliced(axis, 0, step / bytesOf(x.dtype)), x.offset);
}

/** @internal Returns one example of a tensor at its latest level: a view. */
export function exampleOf(x: Tensor, index: number): Tensor {
  const { base, step } = batchOf(x)!;
  return new Tensor(base, x.dtype, x.shape, x.strides, x.offset + index * (step / bytesOf(x.dtype)));
}

/**
 * @internal Returns a view with the examples of all levels along leading axes; the tensor itself if it is not batched.
 */
export const everyExample = (x: Tensor): Tensor => (x.storage.batch ? everyExample(allExamples(x)) : x);
