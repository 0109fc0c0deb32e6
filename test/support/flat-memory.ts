/** Programs that train without disposing of anything, and print their memory use, which must stay flat. */
import { expect } from "bun:test";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { MemoryPoint } from "./memory-point.ts";

let free = Math.min(availableParallelism(), 2);
const waiting: (() => void)[] = [];

/** Runs two programs at a time, each of which computes in one thread, whatever the number of concurrent tests. */
async function inTurn<Result>(body: () => Promise<Result>): Promise<Result> {
  if (free > 0) free--;
  else await new Promise<void>((resolve) => waiting.push(resolve));
  try {
    return await body();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else free++;
  }
}

async function pointsOf(program: string, words: readonly string[]): Promise<MemoryPoint[]> {
  const path = join(import.meta.dir, program);
  const child = Bun.spawn([process.execPath, path, ...words], { stdout: "pipe", stderr: "pipe" });
  const [text, errors, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect([status, errors]).toEqual([0, ""]);
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as MemoryPoint);
}

const megabytes = (values: readonly number[]) => values.map((bytes) => (bytes / 1e6).toFixed(0)).join(" ");
const largest = (points: readonly MemoryPoint[], of: (point: MemoryPoint) => number) => Math.max(...points.map(of));

/** Runs a program of this folder. Prints its memory use over time, and returns it. */
export async function checkFlat(program: string, ...words: string[]): Promise<readonly MemoryPoint[]> {
  const points = await inTurn(() => pointsOf(program, words));
  const resident = points.map(({ residentBytes }) => residentBytes);
  const live = points.map(({ liveBytes }) => liveBytes);
  console.log(
    `      ${words.join(" ")}\n        resident MB ${megabytes(resident)}\n        native MB   ${megabytes(live)}`,
  );
  const after = points.pop()!;
  expect(points).toHaveLength(20);
  expect(points.at(-1)!.loss).toBeLessThan(points[0]!.loss); // it did train
  const [earlier, later] = [points.slice(5, 10), points.slice(10)];
  // A block kept each step would be thousands of blocks, and as many times its size. Half of the points show it; one
  // alone may be high, while JavaScript's compiler works on a function or just before a collection.
  const laterResident = later.map(({ residentBytes }) => residentBytes).sort((one, other) => one - other);
  expect(laterResident[later.length >> 1]!).toBeLessThan(largest(earlier, (one) => one.residentBytes) + 24e6);
  expect(largest(later, ({ liveBytes }) => liveBytes)).toBeLessThan(2 * largest(earlier, (one) => one.liveBytes) + 4e6);
  expect(after.blocks).toBeLessThan(100);
  return points;
}
