/** Finds text files, without duplicates. */
import { isPromise } from "../core/context.ts";
import type { FoundFile } from "./paths.ts";
import { blocksOf } from "./read.ts";

export const skipReasons = ["empty", "binary", "badUtf8", "duplicate", "unreadable"] as const;
/**
 * Why a file was skipped: it is empty; it starts with a NUL or many control characters; it is not UTF-8; it has the
 * same contents as another file; it cannot be read.
 */
export type SkipReason = (typeof skipReasons)[number];

/** A text file. */
export interface Document {
  readonly path: string;
  readonly byteLength: number;
  /** The SHA-256 of the contents. */
  readonly hash: string;
}

export interface Scan {
  readonly documents: readonly Document[];
  /** Paths of skipped files by reason. */
  readonly skipped: Readonly<Record<SkipReason, readonly string[]>>;
}

/** Reads all files once. @param onFile called after each file; a promise that it returns is awaited */
export async function scanFiles(
  files: readonly FoundFile[],
  onFile: (file: FoundFile) => void | Promise<void>,
): Promise<Scan> {
  const documents = new Map<string, Document>();
  const skipped: Record<SkipReason, string[]> = { empty: [], binary: [], badUtf8: [], duplicate: [], unreadable: [] };
  for (const file of files) {
    const { reason, hash } = examine(file.path);
    if (reason !== undefined) skipped[reason].push(file.path);
    else if (documents.has(hash)) skipped.duplicate.push(file.path);
    else documents.set(hash, { path: file.path, byteLength: file.byteLength, hash });
    const pending = onFile(file);
    if (isPromise(pending)) await pending;
  }
  return { documents: [...documents.values()], skipped };
}

function examine(path: string): { reason?: SkipReason; hash: string } {
  const hasher = new Bun.CryptoHasher("sha256");
  const text = new TextDecoder("utf-8", { fatal: true });
  let isFirst = true;
  try {
    for (const block of blocksOf(path)) {
      if (isFirst && isBinary(block)) return { reason: "binary", hash: "" };
      isFirst = false;
      text.decode(block, { stream: true });
      hasher.update(block);
    }
    text.decode();
  } catch (cause) {
    return { reason: cause instanceof TypeError ? "badUtf8" : unreadable(cause), hash: "" };
  }
  return isFirst ? { reason: "empty", hash: "" } : { hash: hasher.digest("hex") };
}

function unreadable(cause: unknown): "unreadable" {
  if (cause instanceof Error && "code" in cause && /^E[A-Z]+$/.test(String(cause.code))) return "unreadable";
  throw cause;
}

const EXAMINED_BYTES = 8192;
/** A text has at most this fraction of control characters. */
const MAX_CONTROL_FRACTION = 0.1;
/** Control characters that occur in text: backspace, tab, newlines, form feed, escape. */
const TEXT_CONTROLS = new Set([0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1b]);

/** Whether the start of a file has a NUL or too many control characters. */
function isBinary(block: Uint8Array): boolean {
  const start = block.subarray(0, EXAMINED_BYTES);
  if (start.includes(0)) return true;
  let controls = 0;
  for (const byte of start) if (byte < 0x20 && !TEXT_CONTROLS.has(byte)) controls++;
  return controls > start.byteLength * MAX_CONTROL_FRACTION;
}
