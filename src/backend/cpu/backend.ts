import { OrchardError, OutOfMemoryError } from "../../core/errors.ts";
import { tupleOf } from "../../core/tuples.ts";
import { observer } from "../../observe/observer.ts";
import { allocateHost, installHostAllocator, LARGE, type Memory } from "../../tensor/memory.ts";
import { reserve } from "../../tensor/reserve.ts";
import { type Meter, meter } from "../../tensor/usage.ts";
import type { Backend } from "../backend.ts";
import { whyMissing } from "../library.ts";
import { statisticsFields } from "./abi.ts";
import { cpuLibrary, cpuLibraryCandidates, type Native } from "./loader.ts";
import { allocateBlock, type NativeBlock } from "./memory.ts";
import { cpuStatistics } from "./report.ts";
import { check } from "./status.ts";

/** The cpu backend: C++ vector kernels and BLAS. */
export const cpuBackend: Backend = {
  name: "cpu",

  unavailable() {
    const missing = whyMissing("ORCHARD_CPU_LIBRARY", cpuLibraryCandidates());
    if (missing !== undefined) return missing;
    try {
      const { native } = cpuLibrary();
      const { usage } = meter("host", meterOf(native));
      installHostAllocator((byteLength) => {
        if (byteLength < LARGE) return null;
        reserve(byteLength);
        const memory = new BlockMemory(allocateOrCollect(native, byteLength));
        if (observer) observer.allocated(byteLength, "host", usage());
        return memory;
      });
      return undefined;
    } catch (error) {
      if (error instanceof OrchardError) return error.message;
      throw error;
    }
  },

  allocate: (byteLength) => allocateHost(byteLength),
  makeResident: () => undefined, // storages give the CPU access to their memory
};

/**
 * Allocates a block. At the memory limit, it collects garbage and retries, unless the block alone exceeds the limit.
 */
function allocateOrCollect(native: Native, byteLength: number): NativeBlock {
  try {
    return allocateBlock(native, byteLength, "allocate");
  } catch (error) {
    if (!(error instanceof OutOfMemoryError) || byteLength > cpuStatistics(native).memoryLimit) throw error;
    Bun.gc(true);
    return allocateBlock(native, byteLength, "allocate");
  }
}

const numbers = new Float64Array(statisticsFields.length);
const [liveBytesAt, liveBlocksAt, peakBytesAt, cachedBytesAt, cacheLimitAt] = tupleOf(
  (["liveBytes", "liveBlocks", "peakBytes", "cachedBytes", "cacheLimit"] as const).map((field) =>
    statisticsFields.indexOf(field),
  ),
  5,
);
/** Free blocks of this size are always kept. */
const KEPT_BYTES = 2 ** 21;

/** The allocator counts blocks of tensors and temporary memory of operations. */
const meterOf = (native: Native): Meter => ({
  usage() {
    check(native, native.orchard_cpu_statistics(numbers), "cpu statistics");
    return { liveBytes: numbers[liveBytesAt], blocks: numbers[liveBlocksAt], peakBytes: numbers[peakBytesAt] };
  },
  resetPeak() {
    check(native, native.orchard_cpu_reset_peak(), "cpu statistics");
  },
  trim() {
    check(native, native.orchard_cpu_trim(), "cpu trim");
  },
  boundCache() {
    check(native, native.orchard_cpu_statistics(numbers), "cpu statistics");
    const room = Math.max(KEPT_BYTES, numbers[peakBytesAt] * 1.25 - numbers[liveBytesAt]);
    if (numbers[cachedBytesAt] <= room) return;
    const limit = numbers[cacheLimitAt];
    check(native, native.orchard_cpu_set_cache_limit(Math.floor(room)), "cpu cache limit");
    check(native, native.orchard_cpu_set_cache_limit(limit), "cpu cache limit");
  },
});

/** A block of the dylib's allocator. */
class BlockMemory implements Memory {
  readonly device = "host";

  private isReleased = false;

  constructor(private readonly block: NativeBlock) {}

  get byteLength(): number {
    return this.hostBytes().byteLength;
  }
  hostBuffer(): ArrayBuffer {
    return this.block.buffer;
  }
  hostBytes(): Uint8Array {
    return this.block.bytes;
  }
  whenReady(): null {
    return null;
  }
  release(): void {
    if (this.isReleased) return; // the block may have another owner now
    this.isReleased = true;
    this.block.release();
  }
}
