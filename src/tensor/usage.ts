/** How much memory tensors take outside JavaScript's own. */
import type { Place } from "./memory.ts";

/** What tensors take now. */
export interface LiveMemory {
  /** Bytes of blocks that are in use, by tensors, by what autograd saved and by work under way. Cached free blocks are not counted. */
  readonly liveBytes: number;
  /** How many blocks that is. */
  readonly blocks: number;
}

/** What tensors take now, and took at most. */
export interface MemoryUsage extends LiveMemory {
  /** The most bytes that were live at once since {@link resetPeakMemory}, or the start. */
  readonly peakBytes: number;
}

interface Meter {
  readonly read: () => LiveMemory;
  peakBytes: number;
}

const meters = new Map<Place, Meter>();

/** @internal Registers how a place's live memory is read. */
export function meter(place: Place, read: () => LiveMemory): { noteAllocation(): MemoryUsage } {
  const own: Meter = { read, peakBytes: 0 };
  meters.set(place, own);
  // What is live grows by allocations only, so that a look after each of them misses no peak.
  return { noteAllocation: () => usageOf(own) };
}

function usageOf(own: Meter): MemoryUsage {
  const { liveBytes, blocks } = own.read();
  own.peakBytes = Math.max(own.peakBytes, liveBytes);
  return { liveBytes, blocks, peakBytes: own.peakBytes };
}

const nothing: MemoryUsage = { liveBytes: 0, blocks: 0, peakBytes: 0 };

/**
 * The native memory that tensors take now, by place: `host` is the cpu backend's blocks (of 64 KB and more; smaller ones are
 * JavaScript's own and not counted), `metal` the device's buffers. Loads nothing.
 *
 * @example
 * resetPeakMemory();
 * trainStep();
 * console.log(memory().host.peakBytes / 2 ** 20, "MB at most");
 */
export function memory(): Record<Place, MemoryUsage> {
  const of = (place: Place) => {
    const known = meters.get(place);
    return known ? usageOf(known) : nothing;
  };
  return { host: of("host"), metal: of("metal") };
}

/** Starts peaks anew, from what is live now. */
export function resetPeakMemory(): void {
  for (const own of meters.values()) own.peakBytes = own.read().liveBytes;
}
