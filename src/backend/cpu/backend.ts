import { existsSync } from "node:fs";
import { OrchardError } from "../../errors.ts";
import { allocateHost, installHostAllocator, type Memory } from "../../tensor/memory.ts";
import type { Backend } from "../backend.ts";
import { cpuLibrary, cpuLibraryCandidates, type Native } from "./loader.ts";
import { allocateBlock, type NativeBlock } from "./memory.ts";

/** C++ vector kernels and BLAS, on the machine's own processors. */
export const cpuBackend: Backend = {
  name: "cpu",

  unavailable() {
    if (!cpuLibraryCandidates().some(({ path }) => existsSync(path)))
      return "its dylib is not built (`bun run build` makes it)";
    try {
      const { native } = cpuLibrary();
      installHostAllocator((byteLength) => allocateLarge(native, byteLength));
      return undefined;
    } catch (error) {
      if (error instanceof OrchardError) return error.message;
      throw error;
    }
  },

  allocate: (byteLength) => allocateHost(byteLength),
  reach: () => undefined, // storages show their memory to the CPU themselves
};

/** Blocks from this size on come from the dylib's allocator, which keeps their pages; smaller ones are JavaScript's own. */
const LARGE = 1 << 16;

const allocateLarge = (native: Native, byteLength: number): Memory | null =>
  byteLength < LARGE ? null : new BlockMemory(allocateBlock(native, byteLength, "allocate"));

/** A block of the dylib's allocator. */
class BlockMemory implements Memory {
  readonly place = "host";
  private readonly bytes: Uint8Array;

  constructor(private readonly block: NativeBlock) {
    this.bytes = new Uint8Array(block.buffer);
  }

  get byteLength(): number {
    return this.bytes.byteLength;
  }
  hostBuffer(): ArrayBuffer {
    return this.block.buffer;
  }
  hostBytes(): Uint8Array {
    return this.bytes;
  }
  settled(): null {
    return null;
  }
  release(): void {
    this.block.release();
  }
}
