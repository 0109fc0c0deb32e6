/** Programs that train without disposing of anything, and print their memory use, which must stay flat. */
import { expect } from "bun:test";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type MemoryPoint, POINTS } from "./memory-point.ts";
import { bunWords } from "./program.ts";

let free = Math.min(availableParallelism(), 2);
const waiting: (() => void)[] = [];

/** Runs two programs at a time, each with one thread, regardless of the number of concurrent tests. */
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
  const child = Bun.spawn([...bunWords, path, ...words], { stdout: "pipe", stderr: "pipe" });
  const [text, errors, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect([status, errors]).toEqual([0, ""]);
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as MemoryPoint);
}

const megabytes = (values: readonly number[]) => values.map((bytes) => (bytes / 1e6).toFixed(0)).join(" ");
const largest = (points: readonly MemoryPoint[], of: (point: MemoryPoint) => number) => Math.max(...points.map(of));

/** Bytes that resident memory may grow from a quarter to the next: less than a page of 16 KB in each of 750 steps. */
const MOST_GROWTH = 10e6;

/** The growth of the median of resident memory, from each quarter to the next. */
function growthOfQuarters(points: readonly MemoryPoint[]): number[] {
  const ofQuarter = (quarter: number) => points.slice((quarter * POINTS) / 4, ((quarter + 1) * POINTS) / 4);
  const medians = [0, 1, 2, 3].map((quarter) => {
    const sorted = ofQuarter(quarter)
      .map(({ residentBytes }) => residentBytes)
      .sort((one, other) => one - other);
    return sorted[sorted.length >> 1];
  });
  return [1, 2, 3].map((quarter) => medians[quarter] - medians[quarter - 1]);
}

/** Runs a program of this folder. Prints its memory use over time, and returns it. */
export async function checkFlat(program: string, ...words: string[]): Promise<readonly MemoryPoint[]> {
  const points = await inTurn(() => pointsOf(program, words));
  const resident = points.map(({ residentBytes }) => residentBytes);
  const live = points.map(({ liveBytes }) => liveBytes);
  console.log(
    `      ${words.join(" ")}\n        resident MB ${megabytes(resident)}\n        native MB   ${megabytes(live)}`,
  );
  const after = points.pop()!;
  expect(points).toHaveLength(POINTS);
  expect(points.at(-1)!.loss).toBeLessThan(points[0].loss); // the model has learned
  const [earlier, later] = [points.slice(5, 10), points.slice(10)];
  // A block kept each step adds thousands of blocks to each quarter. A single point may be high while JavaScript's
  // compiler works on a function, and a single quarter if the heap grows in it.
  const growth = growthOfQuarters(points);
  expect({ growth, isFlat: Math.min(...growth.slice(1)) < MOST_GROWTH }).toEqual({ growth, isFlat: true });
  expect(largest(later, ({ liveBytes }) => liveBytes)).toBeLessThan(2 * largest(earlier, (one) => one.liveBytes) + 4e6);
  expect(after.blocks).toBeLessThan(100);
  return points;
}
