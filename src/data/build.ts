/** Making a token file of documents. */
import { DataError } from "../core/errors.ts";
import { writeAtomically } from "../io/atomic.ts";
import type { FoundFile } from "./paths.ts";
import { textParts } from "./read.ts";
import { type Document, type Scan, scanFiles, skipReasons } from "./scan.ts";
import { MANIFEST_VERSION, type Manifest, TokenWriter, tokenPath, writeManifest } from "./token_file.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** How far the making of a token file is. */
export interface DataProgress {
  /** First all files are read and checked, then the texts are encoded. */
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
  /** The share of the text that is held out. */
  readonly heldOut: number;
  readonly folder: string;
  readonly key: string;
  readonly onProgress: (progress: DataProgress) => void;
}

/** Reads, splits, encodes and writes. @throws {DataError} `nothingReadable` @throws {FileError} */
export async function buildTokens(plan: BuildPlan): Promise<Manifest> {
  const { operation, files, folder, key, tokenizer } = plan;
  const scan = await scanFiles(files, progress(plan, "reading", files));
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
  const told = progress(plan, "encoding", documents);
  await encodeAll(plan, train, writer, told);
  const boundary = writer.length;
  await encodeAll(plan, heldOut, writer, told);
  const { trainTokens, split } = splitTokens(boundary, writer.length, plan.heldOut);
  const fingerprint = writer.finish(trainTokens);
  return { tokens: writer.length, trainTokens, split, largestToken: writer.largest, fingerprint };
}

async function encodeAll(
  { operation, tokenizer }: BuildPlan,
  documents: readonly Document[],
  writer: TokenWriter,
  told: (document: Document) => Promise<void> | undefined,
): Promise<void> {
  for (const document of documents) {
    for (const text of textParts(document.path)) {
      writer.write(tokenizer.encode(text));
      if (document.byteLength > LARGE_BYTES) await turnOfEventLoop();
    }
    writer.write([tokenizer.separator]);
    if (writer.largest >= tokenizer.vocabularySize)
      throw new DataError(
        operation,
        "vocabularyTooSmall",
        `${document.path} has the token ${writer.largest}, and the tokenizer ${tokenizer.name} says that its numbers are below ${tokenizer.vocabularySize}`,
      );
    await told(document);
  }
}

const LARGE_BYTES = 2 ** 22;
const TOLD_MILLISECONDS = 50;
const turnOfEventLoop = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Counts files, and tells now and then, with a turn of the event loop, so that whoever is told can show it. */
function progress(
  { onProgress }: BuildPlan,
  phase: DataProgress["phase"],
  all: readonly { readonly byteLength: number }[],
): (file: { readonly byteLength: number }) => Promise<void> | undefined {
  const totalBytes = all.reduce((sum, { byteLength }) => sum + byteLength, 0);
  let [files, bytes, last] = [0, 0, performance.now()];
  return ({ byteLength }) => {
    files++;
    bytes += byteLength;
    if (files < all.length && performance.now() - last < TOLD_MILLISECONDS) return undefined;
    last = performance.now();
    onProgress({ phase, files, totalFiles: all.length, bytes, totalBytes });
    return turnOfEventLoop();
  };
}

function nothingReadable(operation: string, { skipped }: Scan): DataError {
  const reasons = skipReasons.filter((reason) => skipped[reason].length > 0);
  const found = reasons.map((reason) => `${skipped[reason].length} ${reason} (${skipped[reason][0]})`).join(", ");
  const code = reasons.length === 1 && reasons[0] === "empty" ? "emptyFile" : "nothingReadable";
  return new DataError(operation, code, `no file has text: ${found || "there are no files"}; name others`);
}

/**
 * Whole documents are held out, so that nothing of what is evaluated was seen next to what was learned: those whose contents' hashes are the
 * lowest, up to the share of bytes. So the choice depends on contents alone, and adding a document moves few others.
 */
function splitDocuments(documents: readonly Document[], share: number): { train: Document[]; heldOut: Document[] } {
  let room = share * documents.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const chosen = new Set<Document>();
  for (const document of documents.toSorted((a, b) => (a.hash < b.hash ? -1 : 1))) {
    if (document.byteLength > room) continue;
    chosen.add(document);
    room -= document.byteLength;
  }
  return {
    train: documents.filter((document) => !chosen.has(document)),
    heldOut: documents.filter((document) => chosen.has(document)),
  };
}

/** Where documents do not come near the share (there is one, or few, or one that is nearly all), the end of the tokens is held out. */
function splitTokens(boundary: number, tokens: number, share: number): Pick<Manifest, "trainTokens" | "split"> {
  if (share === 0) return { trainTokens: tokens, split: "none" };
  const came = (tokens - boundary) / tokens;
  if (came >= share / 2 && came <= share * 2) return { trainTokens: boundary, split: "documents" };
  return { trainTokens: Math.floor(tokens * (1 - share)), split: "tail" };
}
