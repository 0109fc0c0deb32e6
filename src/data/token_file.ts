/**
 * Tokens on disk. `<key>.tokens` holds the token ids in 16 bits each, or 32 if the vocabulary needs it, in native byte
 * order. `<key>.json` is the manifest, which is written last.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { type FileWriter, writeAtomically } from "../io/atomic.ts";
import { withFileErrors } from "../io/file_errors.ts";
import type { SkipReason } from "./scan.ts";

/** The description of a token file. */
export interface Manifest {
  readonly version: number;
  readonly bytesPerToken: 2 | 4;
  readonly tokens: number;
  /** The number of tokens for training, which come first; the remainder is held out. */
  readonly trainTokens: number;
  readonly split: "documents" | "tail" | "none";
  readonly largestToken: number;
  /** A hash of all tokens and the split. The same data have the same fingerprint on every machine. */
  readonly fingerprint: string;
  readonly documents: number;
  readonly bytes: number;
  readonly skipped: Readonly<Record<SkipReason, readonly string[]>>;
}

export const MANIFEST_VERSION = 1;

export const tokenPath = (folder: string, key: string): string => join(folder, `${key}.tokens`);
export const manifestPath = (folder: string, key: string): string => join(folder, `${key}.json`);

/** Reads the manifest of a complete token file; undefined if there is none. */
export async function readManifest(folder: string, key: string): Promise<Manifest | undefined> {
  const size = statSync(tokenPath(folder, key), { throwIfNoEntry: false })?.size;
  if (size === undefined) return undefined;
  try {
    const manifest: Manifest = await Bun.file(manifestPath(folder, key)).json();
    const isComplete = manifest.version === MANIFEST_VERSION && manifest.tokens * manifest.bytesPerToken === size;
    return isComplete ? manifest : undefined;
  } catch {
    return undefined; // missing or invalid JSON: the token file is rebuilt
  }
}

export const writeManifest = (operation: string, folder: string, key: string, manifest: Manifest): Promise<void> =>
  writeAtomically(operation, manifestPath(folder, key), (file) => file.write(Buffer.from(JSON.stringify(manifest))));

const BUFFERED_TOKENS = 2 ** 20;

/** Writes tokens sequentially through a buffer. */
export class TokenWriter {
  /** The number of tokens so far. */
  length = 0;
  /** The largest token so far. */
  largest = 0;
  private readonly hasher = new Bun.CryptoHasher("sha256");
  private readonly buffer: Uint16Array | Uint32Array;
  private buffered = 0;

  constructor(
    private readonly file: FileWriter,
    bytesPerToken: 2 | 4,
  ) {
    this.buffer = bytesPerToken === 2 ? new Uint16Array(BUFFERED_TOKENS) : new Uint32Array(BUFFERED_TOKENS);
  }

  write(tokens: ArrayLike<number>): void {
    for (let index = 0; index < tokens.length; index++) {
      const token = tokens[index];
      if (token > this.largest) this.largest = token;
      this.buffer[this.buffered++] = token;
      if (this.buffered === BUFFERED_TOKENS) this.flush();
    }
    this.length += tokens.length;
  }

  /** Flushes the buffer. Returns a hash of all tokens and of the split. */
  finish(trainTokens: number): string {
    this.flush();
    return this.hasher.update(`${trainTokens} of ${this.length}`).digest("hex");
  }

  private flush(): void {
    const part = this.buffer.subarray(0, this.buffered);
    const bytes = new Uint8Array(part.buffer, 0, part.byteLength);
    this.hasher.update(bytes);
    this.file.write(bytes);
    this.buffered = 0;
  }
}

/** Larger files are mapped in segments, as a mapping must be smaller than 4 GB. */
const SEGMENT_TOKENS = 2 ** 28;

/** A range of a memory-mapped token file. */
export class TokenRange {
  private readonly segments: readonly (Uint16Array | Uint32Array)[];

  private constructor(
    segments: readonly (Uint16Array | Uint32Array)[],
    private readonly begin: number,
    readonly length: number,
  ) {
    this.segments = segments;
  }

  /** Maps a whole file. */
  static open(operation: string, path: string, { tokens, bytesPerToken }: Manifest): TokenRange {
    const ArrayOf = bytesPerToken === 2 ? Uint16Array : Uint32Array;
    const segments = Array.from({ length: Math.ceil(tokens / SEGMENT_TOKENS) }, (_, segment) => {
      const first = segment * SEGMENT_TOKENS;
      const count = Math.min(SEGMENT_TOKENS, tokens - first);
      const range = { offset: first * bytesPerToken, size: count * bytesPerToken, shared: false };
      return new ArrayOf(withFileErrors(operation, path, () => Bun.mmap(path, range)).buffer, 0, count);
    });
    return new TokenRange(segments, 0, tokens);
  }

  /** A part of the range, over the same mapping. */
  part(begin: number, end: number): TokenRange {
    return new TokenRange(this.segments, this.begin + begin, end - begin);
  }

  /** Fills a target with the tokens from `start` on. */
  copyTo(target: Int32Array, start: number): void {
    for (let done = 0; done < target.length; ) {
      const index = this.begin + start + done;
      const segment = this.segments[Math.floor(index / SEGMENT_TOKENS)];
      const from = index % SEGMENT_TOKENS;
      const part = segment.subarray(from, from + target.length - done);
      target.set(part, done);
      done += part.length;
    }
  }
}
