/**
 * Caches build products in the user's cache, under a hash of everything they are made of. Another clone on the machine,
 * or a job of continuous integration that restores the folder, copies them instead of building.
 */
import { createHash } from "node:crypto";
import {
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { cacheFolder } from "../src/core/paths.ts";

/** Returns a key: the SHA-256 of its parts, which are delimited, so that ("ab", "c") and ("a", "bc") differ. */
export function contentKey(parts: Iterable<string | Uint8Array>): string {
  const hash = createHash("sha256");
  for (const part of parts) {
    hash.update(`${typeof part === "string" ? Buffer.byteLength(part) : part.length}:`);
    hash.update(part);
  }
  return hash.digest("hex");
}

/** A folder of files by key with at most `limit` bytes. The least recently used files are removed first. */
export class ContentCache {
  readonly folder: string;
  readonly #limit: number;

  constructor(name: string, limit: number, parent: string = cacheFolder()) {
    this.folder = join(parent, name);
    this.#limit = limit;
  }

  has(key: string): boolean {
    return existsSync(this.#pathOf(key));
  }

  /** Copies the file of a key to `path`, and returns whether there was one. */
  restore(key: string, path: string): boolean {
    const kept = this.#pathOf(key);
    try {
      copyWhole(kept, path);
    } catch {
      return false; // missing, or removed by another process in the meantime
    }
    const now = new Date();
    if (existsSync(kept)) utimesSync(kept, now, now);
    return true;
  }

  /** Stores a copy of the file at `path`. Failures are ignored, since a cache that can't be written only costs time. */
  store(key: string, path: string): void {
    try {
      mkdirSync(dirname(this.#pathOf(key)), { recursive: true });
      copyWhole(path, this.#pathOf(key));
    } catch (error) {
      console.warn(
        `The build cache ${this.folder} cannot be written: ${error instanceof Error ? error.message : error}`,
      );
    }
  }

  /** Removes the least recently used files until the limit holds. */
  trim(): void {
    if (!existsSync(this.folder)) return;
    const files = readdirSync(this.folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .flatMap((entry) => factsOf(join(entry.parentPath, entry.name)))
      .sort((a, b) => b.used - a.used);
    let bytes = 0;
    for (const { path, size } of files) {
      bytes += size;
      if (bytes > this.#limit) rmSync(path, { force: true });
    }
  }

  #pathOf(key: string): string {
    return join(this.folder, key.slice(0, 2), key.slice(2));
  }
}

const factsOf = (path: string) => {
  const facts = statSync(path, { throwIfNoEntry: false }); // another process may have removed it
  return facts ? [{ path, size: facts.size, used: facts.mtimeMs }] : [];
};

/** Copies atomically; if the file system supports it, the copy shares the blocks of the original. */
function copyWhole(from: string, to: string): void {
  const draft = `${to}.${process.pid}`;
  try {
    copyFileSync(from, draft, constants.COPYFILE_FICLONE);
    renameSync(draft, to);
  } finally {
    rmSync(draft, { force: true });
  }
}

interface Known {
  readonly version: string;
  readonly content: Buffer;
}

const contents = new Map<string, Known>();

/** Returns the content of a file, and reads it again only after a change; undefined if there is no such file. */
export function contentOf(path: string): Buffer | undefined {
  const facts = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (!facts?.isFile()) return undefined;
  const version = [facts.ino, facts.size, facts.mtimeNs, facts.ctimeNs].join(" ");
  const known = contents.get(path);
  if (known?.version === version) return known.content;
  const content = readFileSync(path);
  contents.set(path, { version, content });
  return content;
}
