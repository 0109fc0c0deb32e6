/** A training program's report of its memory, one line of JSON each: see `flat-memory.ts`. */
import { memory } from "../../src/tensor/usage.ts";

/** A measurement of memory: one line of the program's output. */
export interface MemoryPoint {
  readonly step: number;
  readonly residentBytes: number;
  /** Bytes that tensors use outside JavaScript's memory. */
  readonly liveBytes: number;
  readonly blocks: number;
  readonly loss: number;
}

/** A training prints its memory this many times. */
export const POINTS = 20;

/** Whether memory is printed after a step. */
export const isPoint = (step: number, steps: number): boolean => step % (steps / POINTS) === 0;

/**
 * Prints memory. At the end of each quarter of the steps it then collects garbage: otherwise the collector lets its
 * heap grow over thousands of steps, so that a leak would show only in more of them.
 */
export function printPoint(step: number, steps: number, loss: number): void {
  printMemory(step, loss);
  if (step % (steps / 4) === 0) Bun.gc(true);
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
