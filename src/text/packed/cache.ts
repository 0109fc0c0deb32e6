/** Packed tokenizers in the user's cache, by the hash of their `tokenizer.json`. */
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheFolder } from "../../core/paths.ts";
import { removeIfPossible } from "../../io/atomic.ts";
import type { TokenizerJson } from "../tokenizer_file.ts";
import { decodePacked, encodePacked, type PackedTokenizer } from "./file.ts";
import { packTokenizer } from "./tokenizer.ts";

/** Smaller files are fast to parse. */
const LARGE = 2 ** 20;
/** Maximum number of files; the least recently used are removed. Each has about 16 MB. */
const MOST_FILES = 8;

const folder = (): string => join(cacheFolder(), "tokenizers");

/** Returns the path of a file's packed form; undefined for small files. */
export const packedPath = (contents: Uint8Array): string | undefined =>
  contents.byteLength < LARGE
    ? undefined
    : join(folder(), `${new Bun.CryptoHasher("sha256").update(contents).digest("hex")}.bin`);

/** Reads a packed tokenizer; undefined if it does not exist or is damaged. */
export function readPacked(path: string): PackedTokenizer | undefined {
  try {
    const bytes = readFileSync(path);
    const now = new Date();
    utimesSync(path, now, now);
    return decodePacked(bytes.byteOffset === 0 ? bytes : Uint8Array.from(bytes));
  } catch {
    return undefined;
  }
}

/** Writes a validated tokenizer to the cache. Failures are ignored. */
export function writePacked(path: string, json: TokenizerJson): void {
  const tokenizer = packTokenizer(json);
  if (tokenizer === undefined) return;
  const part = `${path}.${process.pid}.part`;
  try {
    mkdirSync(folder(), { recursive: true });
    writeFileSync(part, encodePacked(tokenizer));
    renameSync(part, path);
    removeOld();
  } catch {
    removeIfPossible(part);
  }
}

function removeOld(): void {
  const files = readdirSync(folder()).map((name) => join(folder(), name));
  const used = files.map((path) => ({ path, time: statSync(path).mtimeMs })).sort((a, b) => b.time - a.time);
  for (const { path } of used.slice(MOST_FILES)) removeIfPossible(path);
}
