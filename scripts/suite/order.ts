/**
 * Draws the order of test files from a seed, so that dependencies between files in a process show and can be
 * reproduced. Slow files tend to come early, so that no process waits for one at the end.
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

/**
 * Returns the files in the order of the seed. Each next file is drawn from the remaining ones with a probability
 * proportional to its time (Efraimidis and Spirakis 2006: in descending order of u^(1/time), u from 0 to 1).
 */
export function inOrderOf(seed: number, files: readonly string[], timings: Timings): string[] {
  const keys = new Map(files.map((file) => [file, Math.log(uniform(seed, file)) / Math.max(timings(file), 0.001)]));
  return files.toSorted((left, right) => keys.get(right)! - keys.get(left)! || (left < right ? -1 : 1));
}

/** Above 0 and below 1. */
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
  return shares[index - 1]!.files;
}
