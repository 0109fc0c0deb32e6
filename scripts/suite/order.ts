/**
 * The order in which test files run: a seed draws it, so that what one file leaves to the next in its process shows,
 * and can be repeated. Slow files are likely to come early: then no process waits for one at the end.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { contentKey } from "../content_cache.ts";
import type { Shard } from "./options.ts";

/** Seconds of each test file. */
export type Timings = (file: string) => number;

/** The times that files took when they were last measured; a second for one that never was. */
export function measuredTimings(root: string = packageRoot): Timings {
  const { files } = JSON.parse(readFileSync(join(root, "test", "timings.json"), "utf8")) as {
    readonly files: Readonly<Record<string, number>>;
  };
  return (file) => (files[file] ?? 1000) / 1000;
}

/** A number to name a run's order by. */
export const drawSeed = (): number => Math.floor(Math.random() * 2 ** 31);

/**
 * The files in the order of the seed. Each next file is drawn from those left with a chance in proportion to its time
 * (Efraimidis and Spirakis 2006: in descending order of u^(1/time), u from 0 to 1).
 */
export function inOrderOf(seed: number, files: readonly string[], timings: Timings): string[] {
  const keys = new Map(files.map((file) => [file, Math.log(uniform(seed, file)) / Math.max(timings(file), 0.001)]));
  return files.toSorted((left, right) => keys.get(right)! - keys.get(left)! || (left < right ? -1 : 1));
}

/** Above 0 and below 1. */
const uniform = (seed: number, file: string): number =>
  (Number.parseInt(contentKey([String(seed), file]).slice(0, 12), 16) + 0.5) / 2 ** 48;

/** A share of the files, whatever the seed: shares take equally long, and together they are all of them. */
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
