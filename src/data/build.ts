/** Builds a token file from documents. */
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { DataError } from "../core/errors.ts";
import { writeAtomically } from "../io/atomic.ts";
import type { FoundFile } from "./paths.ts";
import { textParts } from "./read.ts";
import { type Document, type Scan, scanFiles, skipReasons } from "./scan.ts";
import { MANIFEST_VERSION, type Manifest, TokenWriter, tokenPath, writeManifest } from "./token_file.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** The progress of building a token file. */
export interface DataProgress {
  /** All files are first read and checked, then encoded. */
  readonly phase: "reading" | "encoding";
  readonly files: number;
  readonly totalFiles: number;
  readonly bytes: number;
  readonly totalBytes: number;
}

export interface BuildPlan {
  readonly operation: string;
  readonly files: readonly FoundFile[];
  readonly tokenizer: Tokenizer;
  /** The fraction of the text that is held out. */
  readonly heldOut: number;
  readonly folder: string;
  readonly key: string;
  readonly onProgress: (progress: DataProgress) => void;
}

/**
 * Reads, splits and encodes the documents, and writes the tokens. @throws {DataError} `nothingReadable`
 * @throws {FileError}
 */
export async function buildTokens(plan: BuildPlan): Promise<Manifest> {
  const { operation, files, folder, key, tokenizer } = plan;
  const scan = await scanFiles(files, progressReporter(plan, "reading", files));
  if (scan.documents.length === 0) throw nothingReadable(operation, scan);
  const bytesPerToken = tokenizer.vocabularySize <= 2 ** 16 ? 2 : 4;
  let encoded: Encoded | undefined;
  await writeAtomically(operation, tokenPath(folder, key), async (file) => {
    encoded = await encode(plan, scan.documents, new TokenWriter(file, bytesPerToken));
  });
  const bytes = scan.documents.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const { documents, skipped } = scan;
  const facts = { version: MANIFEST_VERSION, bytesPerToken, documents: documents.length, bytes, skipped } as const;
  const manifest: Manifest = { ...facts, ...encoded! };
  await writeManifest(operation, folder, key, manifest);
  return manifest;
}

type Encoded = Pick<Manifest, "tokens" | "trainTokens" | "split" | "largestToken" | "fingerprint">;

async function encode(plan: BuildPlan, documents: readonly Document[], writer: TokenWriter): Promise<Encoded> {
  const { train, heldOut } = splitDocuments(documents, plan.heldOut);
  const report = progressReporter(plan, "encoding", documents);
  await encodeAll(plan, train, writer, report);
  const boundary = writer.length;
  await encodeAll(plan, heldOut, writer, report);
  const { trainTokens, split } = splitTokens(boundary, writer.length, plan.heldOut);
  const fingerprint = writer.finish(trainTokens);
  return { tokens: writer.length, trainTokens, split, largestToken: writer.largest, fingerprint };
}

async function encodeAll(
  { operation, tokenizer }: BuildPlan,
  documents: readonly Document[],
  writer: TokenWriter,
  report: (document: Document) => Promise<void> | undefined,
): Promise<void> {
  for (const document of documents) {
    for (const text of textParts(document.path)) {
      writer.write(tokenizer.encode(text));
      if (document.byteLength > LARGE_BYTES) await yieldToEventLoop();
    }
    writer.write([tokenizer.separator]);
    const { name, vocabularySize } = tokenizer;
    if (writer.largest >= vocabularySize)
      throw new DataError(
        operation,
        "vocabularyTooSmall",
        `${document.path}: expected tokens of ${name} below ${vocabularySize}, got ${writer.largest}`,
      );
    await report(document);
  }
}

/** Larger documents yield to the event loop after each part. */
const LARGE_BYTES = 2 ** 22;
const REPORT_INTERVAL_MILLISECONDS = 50;

/** Counts files. Reports progress at intervals, and yields to the event loop so that the listener can show it. */
function progressReporter(
  { onProgress }: BuildPlan,
  phase: DataProgress["phase"],
  all: readonly { readonly byteLength: number }[],
): (file: { readonly byteLength: number }) => Promise<void> | undefined {
  const totalBytes = all.reduce((sum, { byteLength }) => sum + byteLength, 0);
  let [files, bytes, last] = [0, 0, performance.now()];
  return ({ byteLength }) => {
    files++;
    bytes += byteLength;
    if (files < all.length && performance.now() - last < REPORT_INTERVAL_MILLISECONDS) return undefined;
    last = performance.now();
    onProgress({ phase, files, totalFiles: all.length, bytes, totalBytes });
    return yieldToEventLoop();
  };
}

function nothingReadable(operation: string, { skipped }: Scan): DataError {
  const reasons = skipReasons.filter((reason) => skipped[reason].length > 0);
  const found = reasons.map((reason) => `${skipped[reason].length} ${reason} (${skipped[reason][0]})`).join(", ");
  const code = reasons.length === 1 && reasons[0] === "empty" ? "emptyFile" : "nothingReadable";
  return new DataError(
    operation,
    code,
    `expected text files, got none: ${found || "there are no files"}; name other files`,
  );
}

/**
 * Holds out whole documents, so that evaluation text is never adjacent to training text: the documents with the lowest
 * content hashes, up to the fraction of bytes. The choice depends only on contents; adding a document moves few others.
 */
export function splitDocuments(
  documents: readonly Document[],
  fraction: number,
): { train: Document[]; heldOut: Document[] } {
  let remaining = fraction * documents.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const chosen = new Set<Document>();
  for (const document of documents.toSorted((a, b) => (a.hash < b.hash ? -1 : 1))) {
    if (document.byteLength > remaining) continue;
    chosen.add(document);
    remaining -= document.byteLength;
  }
  return {
    train: documents.filter((document) => !chosen.has(document)),
    heldOut: documents.filter((document) => chosen.has(document)),
  };
}

/**
 * Holds out the end of the tokens if whole documents miss the fraction by more than a factor of 2, as with one file.
 */
function splitTokens(boundary: number, tokens: number, fraction: number): Pick<Manifest, "trainTokens" | "split"> {
  if (fraction === 0) return { trainTokens: tokens, split: "none" };
  const actual = (tokens - boundary) / tokens;
  if (actual >= fraction / 2 && actual <= fraction * 2) return { trainTokens: boundary, split: "documents" };
  return { trainTokens: Math.floor(tokens * (1 - fraction)), split: "tail" };
}
