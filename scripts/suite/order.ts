/**
 * Draws the order of test files from a seed, so that dependencies between files in a process show and can be
 * reproduced. Slow files come early, so that no process waits for one at the end.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { contentKey } from "../content_cache.ts";
import type { Shard } from "./options.ts";

/** Seconds of each test file. */
export type Timings = (file: string) => number;

/** The last measured times of files; a second for unmeasured ones. */
export function measuredTimings(root: string = packageRoot): Timings {
  const { files } = JSON.parse(readFileSync(join(root, "test", "timings.json"), "utf8")) as {
    readonly files: Readonly<Record<string, number>>;
  };
  return (file) => (files[file] ?? 1000) / 1000;
}

/** Draws the seed of a run. */
export const drawSeed = (): number => Math.floor(Math.random() * 2 ** 31);

/** How far a drawn time is from the measured one: a factor from 1/4 to 4. */
const SPREAD = 4;

/** Returns times of files that differ by seed: each is the measured time, multiplied by a factor of the seed. */
export const drawnTimes =
  (seed: number, timings: Timings): Timings =>
  (file) =>
    Math.max(timings(file), 0.001) * SPREAD ** (2 * uniform(seed, file) - 1);

/** Returns the files in the order of the seed: the longest drawn time first. */
export function inOrderOf(seed: number, files: readonly string[], timings: Timings): string[] {
  const drawn = drawnTimes(seed, timings);
  return files.toSorted((left, right) => drawn(right) - drawn(left) || (left < right ? -1 : 1));
}

/** Returns a number above 0 and below 1. */
const uniform = (seed: number, file: string): number =>
  (Number.parseInt(contentKey([String(seed), file]).slice(0, 12), 16) + 0.5) / 2 ** 48;

/** Returns a share of the files, independent of the seed. Shares take equally long and cover all files. */
export function shareOf(files: readonly string[], { index, count }: Shard, timings: Timings): string[] {
  const shares = Array.from({ length: count }, () => ({ seconds: 0, files: [] as string[] }));
  const slowestFirst = files.toSorted((left, right) => timings(right) - timings(left) || (left < right ? -1 : 1));
  for (const file of slowestFirst) {
    const least = shares.reduce((best, share) => (share.seconds < best.seconds ? share : best));
    least.files.push(file);
    least.seconds += timings(file);
  }
  return shares[index - 1].files;
}
