/** The cache folder of token files: it keeps the most recently used ones, up to a number and a total size. */
import { readdirSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { environment } from "../core/environment.ts";
import { ArgumentError } from "../core/errors.ts";
import { remove } from "../io/atomic.ts";
import { manifestPath } from "./token_file.ts";

const MAX_FILES = 16;
const DEFAULT_MAX_BYTES = 4 * 2 ** 30;

/** Returns the maximum size of the folder in bytes: `ORCHARD_TOKEN_CACHE_LIMIT`. @throws {ArgumentError} */
export function cacheLimit(operation: string, values: Record<string, string | undefined> = process.env): number {
  const text = environment("ORCHARD_TOKEN_CACHE_LIMIT", values);
  if (!text) return DEFAULT_MAX_BYTES;
  const bytes = Number(text);
  if (!Number.isSafeInteger(bytes) || bytes < 0) {
    const message = `expected ORCHARD_TOKEN_CACHE_LIMIT to be a number of bytes, got "${text}"`;
    throw new ArgumentError(operation, "invalidSetting", message);
  }
  return bytes === 0 ? Number.POSITIVE_INFINITY : bytes;
}

/**
 * Sets a token file's time of use to now, and removes the least recently used others. The file itself stays, whatever
 * its size. Processes that have mapped a removed file keep it.
 */
export function markUsed(folder: string, key: string, maxBytes: number): void {
  const now = new Date();
  utimesSync(manifestPath(folder, key), now, now);
  const entries = [...entriesIn(folder)].sort(
    ([a, x], [b, y]) => Number(b === key) - Number(a === key) || y.used - x.used,
  );
  let total = 0;
  for (const [index, [, { bytes, names }]] of entries.entries()) {
    total += bytes;
    if (index > 0 && (index >= MAX_FILES || total > maxBytes)) for (const name of names) remove(join(folder, name));
  }
}

interface Entry {
  readonly names: string[];
  bytes: number;
  /** The latest modification time of the entry's files. */
  used: number;
}

/** Groups files by key: a manifest and its tokens, or the remains of a killed process. */
function entriesIn(folder: string): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const name of readdirSync(folder)) {
    const key = /^([0-9a-f]{32})\.(?:json|tokens)$/.exec(name)?.[1];
    const file = key === undefined ? undefined : statSync(join(folder, name), { throwIfNoEntry: false });
    if (key === undefined || file === undefined) continue; // another process may remove a file at any moment
    const { names, bytes, used } = entries.get(key) ?? { names: [], bytes: 0, used: 0 };
    entries.set(key, { names: [...names, name], bytes: bytes + file.size, used: Math.max(used, file.mtimeMs) });
  }
  return entries;
}
