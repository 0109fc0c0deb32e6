/** A training program's report of its memory, one line of JSON each: see `flat-memory.ts`. */
import { memory } from "../../src/tensor/usage.ts";

/** A measurement of memory: one line of the program's output. */
export interface MemoryPoint {
  readonly step: number;
  readonly residentBytes: number;
  /** Outside JavaScript's memory, by tensors. */
  readonly liveBytes: number;
  readonly blocks: number;
  readonly loss: number;
}

export function printMemory(step: number, loss: number): void {
  const { host, metal } = memory();
  const point: MemoryPoint = {
    step,
    residentBytes: process.memoryUsage.rss(),
    liveBytes: host.liveBytes + metal.liveBytes,
    blocks: host.blocks + metal.blocks,
    loss,
  };
  process.stdout.write(`${JSON.stringify(point)}\n`);
}
