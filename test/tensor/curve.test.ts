/** Training that disposes of nothing: memory stays flat, in loops that wait and in loops that never do. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { environmentFlag } from "../../src/debug/environment.ts";
import type { MemoryPoint } from "../support/training.ts";

// The preload's holds for the first file of a run alone, and on a busy machine 10,000 steps take longer than the 5 s of the others.
setDefaultTimeout(300_000);

const program = join(import.meta.dir, "..", "support", "training.ts");

async function train(...words: string[]): Promise<MemoryPoint[]> {
  const child = Bun.spawn([process.execPath, program, ...words], { stdout: "pipe", stderr: "pipe" });
  const [text, errors, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect([status, errors]).toEqual([0, ""]);
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as MemoryPoint);
}

const megabytes = (values: readonly number[]) => values.map((bytes) => (bytes / 1e6).toFixed(0)).join(" ");
const largest = (points: readonly MemoryPoint[], of: (point: MemoryPoint) => number) => Math.max(...points.map(of));

async function checkFlat(...words: string[]): Promise<void> {
  const points = await train(...words);
  const resident = points.map(({ residentBytes }) => residentBytes);
  const live = points.map(({ liveBytes }) => liveBytes);
  console.log(
    `      ${words.join(" ")}\n        resident MB ${megabytes(resident)}\n        native MB   ${megabytes(live)}`,
  );
  const after = points.pop()!;
  expect(points).toHaveLength(20);
  expect(points.at(-1)!.loss).toBeLessThan(points[0]!.loss); // it did train
  const [earlier, later] = [points.slice(5, 10), points.slice(10)];
  // A block kept each step would be thousands of blocks, and as many times its size.
  expect(largest(later, ({ residentBytes }) => residentBytes)).toBeLessThan(
    largest(earlier, ({ residentBytes }) => residentBytes) + 24e6,
  );
  expect(largest(later, ({ liveBytes }) => liveBytes)).toBeLessThan(2 * largest(earlier, (one) => one.liveBytes) + 4e6);
  expect(after.blocks).toBeLessThan(100);
}

describe("memory of training without dispose", () => {
  test("10,000 steps on cpu, never waiting", () => checkFlat("cpu", "10000", "sync", "128x128x128"));
  test("10,000 steps on cpu, awaiting each", () => checkFlat("cpu", "10000", "async", "128x128x128"));
  test("10,000 steps on cpu, of blocks too small for its allocator", () =>
    checkFlat("cpu", "10000", "sync", "16x16x4"));
});

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("memory of training without dispose on metal", () => {
  test("2,000 steps, never waiting", () => checkFlat("metal", "2000", "sync", "32x32x16"));
  test("2,000 steps, awaiting each", () => checkFlat("metal", "2000", "async", "32x32x16"));
  test("2,000 steps in private buffers", () => checkFlat("metal", "2000", "sync", "32x32x16", "private"));
});
