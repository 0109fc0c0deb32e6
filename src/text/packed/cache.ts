/** Packed tokenizers in the user's cache, each under the hash of the `tokenizer.json` that it is made of. */
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheFolder } from "../../core/paths.ts";
import { removeIfPossible } from "../../io/atomic.ts";
import type { TokenizerJson } from "../tokenizer_file.ts";
import { packBpe } from "./bpe.ts";
import { decodePacked, encodePacked, type PackedTokenizer } from "./file.ts";

/** A smaller file is parsed in no time. */
const LARGE = 2 ** 20;
/** How many are kept, those that were used last: each takes about 16 MB. */
const MOST_FILES = 8;

const folder = (): string => join(cacheFolder(), "tokenizers");

/** Where the packed form of a file is, or would be; undefined for a small file. */
export const packedPath = (contents: Uint8Array): string | undefined =>
  contents.byteLength < LARGE
    ? undefined
    : join(folder(), `${new Bun.CryptoHasher("sha256").update(contents).digest("hex")}.bin`);

/** What is there; undefined where there is nothing, or a damaged file. */
export function readPacked(path: string): PackedTokenizer | undefined {
  try {
    const bytes = readFileSync(path);
    const now = new Date();
    utimesSync(path, now, now);
    return decodePacked(bytes.byteOffset === 0 ? (bytes as Uint8Array<ArrayBuffer>) : Uint8Array.from(bytes));
  } catch {
    return undefined;
  }
}

/** Packs a tokenizer that was checked. A cache that cannot be written is done without. */
export function writePacked(path: string, json: TokenizerJson): void {
  const { type, vocab, merges } = json.model;
  if (type !== "BPE") return;
  const bpe = packBpe(vocab as Readonly<Record<string, number>>, merges as readonly (string | readonly string[])[]);
  if (bpe === undefined) return;
  const rest = { ...json, model: { ...json.model, vocab: {}, merges: [] } };
  const part = `${path}.${process.pid}.part`;
  try {
    mkdirSync(folder(), { recursive: true });
    writeFileSync(part, encodePacked({ json: rest, bpe }));
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
