/**
 * Tokens on disk: `<key>.tokens` holds their numbers in 16 bits each, or 32 where the vocabulary needs it, in the machine's byte order; `<key>.json` what
 * is known of them, and is written last.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { type FileWriter, writeAtomically } from "../io/atomic.ts";
import { withFileErrors } from "../io/file_errors.ts";
import type { SkipReason } from "./scan.ts";

/** What is known of a token file. */
export interface Manifest {
  readonly version: number;
  readonly bytesPerToken: 2 | 4;
  readonly tokens: number;
  /** The first so many are for training, the rest is held out. */
  readonly trainTokens: number;
  readonly split: "documents" | "tail" | "none";
  readonly largestToken: number;
  /** Of all tokens and the split: the same data have the same one on every machine. */
  readonly fingerprint: string;
  readonly documents: number;
  readonly bytes: number;
  readonly skipped: Readonly<Record<SkipReason, readonly string[]>>;
}

export const MANIFEST_VERSION = 1;

export const tokenPath = (folder: string, key: string): string => join(folder, `${key}.tokens`);
export const manifestPath = (folder: string, key: string): string => join(folder, `${key}.json`);

/** What was built before under a key; undefined where there is nothing, or not all of it. */
export async function readManifest(folder: string, key: string): Promise<Manifest | undefined> {
  const size = statSync(tokenPath(folder, key), { throwIfNoEntry: false })?.size;
  if (size === undefined) return undefined;
  try {
    const manifest = (await Bun.file(manifestPath(folder, key)).json()) as Manifest;
    const isWhole = manifest.version === MANIFEST_VERSION && manifest.tokens * manifest.bytesPerToken === size;
    return isWhole ? manifest : undefined;
  } catch {
    return undefined; // it is not there, or no JSON: it is made anew
  }
}

export const writeManifest = (operation: string, folder: string, key: string, manifest: Manifest): Promise<void> =>
  writeAtomically(operation, manifestPath(folder, key), (file) => file.write(Buffer.from(JSON.stringify(manifest))));

const BUFFERED_TOKENS = 2 ** 20;

/** Writes tokens one after the other. */
export class TokenWriter {
  /** So far. */
  length = 0;
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
    for (let at = 0; at < tokens.length; at++) {
      const token = tokens[at]!;
      if (token > this.largest) this.largest = token;
      this.buffer[this.buffered++] = token;
      if (this.buffered === BUFFERED_TOKENS) this.flush();
    }
    this.length += tokens.length;
  }

  /** Writes what is left. Returns a hash of all tokens and of where they are split. */
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

/** A mapping is shorter than 4 GB. */
const SEGMENT_TOKENS = 2 ** 28;

/** A range of a token file, mapped: pages are read when they are used. */
export class TokenRange {
  private readonly segments: readonly (Uint16Array | Uint32Array)[];

  private constructor(
    segments: readonly (Uint16Array | Uint32Array)[],
    private readonly begin: number,
    readonly length: number,
  ) {
    this.segments = segments;
  }

  /** All of a file. */
  static open(operation: string, path: string, { tokens, bytesPerToken }: Manifest): TokenRange {
    const ArrayOf = bytesPerToken === 2 ? Uint16Array : Uint32Array;
    const segments = Array.from({ length: Math.ceil(tokens / SEGMENT_TOKENS) }, (_, segment) => {
      const first = segment * SEGMENT_TOKENS;
      const count = Math.min(SEGMENT_TOKENS, tokens - first);
      const place = { offset: first * bytesPerToken, size: count * bytesPerToken, shared: false };
      return new ArrayOf(withFileErrors(operation, path, () => Bun.mmap(path, place)).buffer, 0, count);
    });
    return new TokenRange(segments, 0, tokens);
  }

  /** A part of it, over the same mapping. */
  part(begin: number, end: number): TokenRange {
    return new TokenRange(this.segments, this.begin + begin, end - begin);
  }

  /** Copies tokens from `start` on into all of a target. */
  copyTo(target: Int32Array, start: number): void {
    for (let done = 0; done < target.length; ) {
      const at = this.begin + start + done;
      const segment = this.segments[Math.floor(at / SEGMENT_TOKENS)]!;
      const from = at % SEGMENT_TOKENS;
      const part = segment.subarray(from, from + target.length - done);
      target.set(part, done);
      done += part.length;
    }
  }
}
