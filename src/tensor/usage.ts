/** Reports the native memory of tensors. */
import { expectNothing } from "../core/parameters.ts";
import type { MemoryDevice } from "./memory.ts";
import { dropSpareBlocks } from "./spare_blocks.ts";

/** The memory that tensors currently use. */
export interface LiveMemory {
  /**
   * Bytes of blocks in use by tensors, by values that autograd saved and by running work. Cached free blocks are not
   * counted.
   */
  readonly liveBytes: number;
  /** The number of blocks in `liveBytes`. */
  readonly blocks: number;
}

/** Current and peak memory of tensors. */
export interface MemoryUsage extends LiveMemory {
  /** Peak of `liveBytes` since {@link resetPeakMemory}, or since the start. */
  readonly peakBytes: number;
}

/** Measures the memory of a device. */
export interface Meter {
  usage(): MemoryUsage;
  /** Resets the peak to the live bytes. */
  resetPeak(): void;
  /** Waits for submitted work, and then frees the memory that only it still needed. */
  settle?(): void;
  /** Returns free blocks to the system. */
  trim?(): void;
  /** Returns the oldest free blocks to the system; see {@link boundCache}. */
  boundCache?(): void;
}

const meters = new Map<MemoryDevice, Meter>();

/** @internal Registers the meter of a device's memory. */
export function meter<Own extends Meter>(device: MemoryDevice, created: Own): Own {
  meters.set(device, created);
  return created;
}

/**
 * @internal Creates a meter for an allocator that reports only live memory. Live memory grows only by allocations, so
 *   calling `notePeak` after each of them misses no peak.
 */
export function peakOf(
  read: () => LiveMemory,
  reclaim: Pick<Meter, "settle" | "trim">,
): Meter & { notePeak(liveBytes: number): void } {
  let peakBytes = 0;
  return {
    ...reclaim,
    /** Called after each allocation with the live bytes. */
    notePeak(liveBytes) {
      peakBytes = Math.max(peakBytes, liveBytes);
    },
    usage() {
      const { liveBytes, blocks } = read();
      peakBytes = Math.max(peakBytes, liveBytes);
      return { liveBytes, blocks, peakBytes };
    },
    resetPeak() {
      peakBytes = read().liveBytes;
    },
  };
}

const nothing: MemoryUsage = { liveBytes: 0, blocks: 0, peakBytes: 0 };

/**
 * Returns the native memory of tensors by device: `host` for the cpu backend's blocks (of 64 KB and more; smaller ones
 * are allocated by JavaScript and not counted), `metal` for the device's buffers. Peaks include temporary memory of
 * operations. Does not load a backend.
 *
 * @example
 * resetPeakMemory();
 * trainStep();
 * console.log(memory().host.peakBytes / 2 ** 20, "MB at most");
 */
export function memory(): Record<MemoryDevice, MemoryUsage>;
export function memory(...values: unknown[]): Record<MemoryDevice, MemoryUsage> {
  expectNothing("memory", values);
  const of = (device: MemoryDevice) => meters.get(device)?.usage() ?? nothing;
  return { host: of("host"), metal: of("metal") };
}

/**
 * Resets the peaks of {@link memory} to the live bytes.
 *
 * @example
 * resetPeakMemory();
 */
export function resetPeakMemory(): void;
export function resetPeakMemory(...values: unknown[]): void {
  expectNothing("resetPeakMemory", values);
  for (const each of meters.values()) each.resetPeak();
}

/**
 * @internal Returns free blocks to the system if live and free blocks exceed the peak of live ones by more than a
 * quarter. Work that runs once, and needs blocks of many sizes, would otherwise fill the cache with all of them.
 */
export function boundCache(): void {
  for (const each of meters.values()) each.boundCache?.();
}

/** @internal Returns all free blocks to the system. */
export function dropCache(): void {
  for (const each of meters.values()) each.trim?.();
}

/** @internal Collects garbage and returns free memory to the system. */
export function reclaimMemory(): void {
  for (const each of meters.values()) each.settle?.();
  dropSpareBlocks();
  Bun.gc(true);
  dropCache();
}
