/** How much memory tensors take outside JavaScript's own. */
import { expectNothing } from "../core/parameters.ts";
import type { MemoryDevice } from "./memory.ts";
import { dropSpareBlocks } from "./spare_blocks.ts";

/** What tensors take now. */
export interface LiveMemory {
  /**
   * Bytes of blocks that are in use, by tensors, by what autograd saved and by work under way. Cached free blocks are
   * not counted.
   */
  readonly liveBytes: number;
  /** How many blocks that is. */
  readonly blocks: number;
}

/** What tensors take now, and took at most. */
export interface MemoryUsage extends LiveMemory {
  /** The most bytes that were live at once since {@link resetPeakMemory}, or the start. */
  readonly peakBytes: number;
}

/** Counts the memory of a device. */
export interface Meter {
  usage(): MemoryUsage;
  /** Starts the peak anew, from what is live now. */
  resetPeak(): void;
  /** Waits for work that holds memory which nobody else needs any more. */
  settle?(): void;
  /** Gives free blocks back to the system. */
  trim?(): void;
}

const meters = new Map<MemoryDevice, Meter>();

/** @internal Registers the meter of a device's memory. */
export function meter<Own extends Meter>(device: MemoryDevice, own: Own): Own {
  meters.set(device, own);
  return own;
}

/**
 * @internal A meter for an allocator that knows what is live only: what is live grows by allocations alone, so that a
 * call of `usage` after each of them misses no peak.
 */
export function peakOf(read: () => LiveMemory, reclaim: Pick<Meter, "settle" | "trim">): Meter {
  let peakBytes = 0;
  return {
    ...reclaim,
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
 * The native memory that tensors take now, by device: `host` is the cpu backend's blocks (of 64 KB and more; smaller
 * ones are JavaScript's own and not counted), `metal` the device's buffers. Peaks have what operations take while they
 * run, too. Loads nothing.
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

/** Starts peaks anew, from what is live now. */
export function resetPeakMemory(): void;
export function resetPeakMemory(...values: unknown[]): void {
  expectNothing("resetPeakMemory", values);
  for (const own of meters.values()) own.resetPeak();
}

/** @internal What can be done where memory is short: collects garbage, and gives what is free back to the system. */
export function reclaimMemory(): void {
  for (const own of meters.values()) own.settle?.();
  dropSpareBlocks();
  Bun.gc(true);
  for (const own of meters.values()) own.trim?.();
}
