import { mkdirSync, readdirSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { ArgumentError, DataError } from "../core/errors.ts";
import { cacheFolder } from "../core/paths.ts";
import { remove } from "../io/atomic.ts";
import { withFileErrors } from "../io/file_errors.ts";
import { buildTokens, type DataProgress } from "./build.ts";
import { type FoundFile, findDeclarations, findFiles } from "./paths.ts";
import type { SkipReason } from "./scan.ts";
import { MANIFEST_VERSION, type Manifest, manifestPath, readManifest, TokenRange, tokenPath } from "./token_file.ts";
import type { Tokenizer } from "./tokenizer.ts";
import { HeldOutWindows, TrainingWindows } from "./windows.ts";

/** What {@link openTextDataset} is to open, and how. */
export interface TextDatasetOptions {
  /**
   * Files, folders (with all that is below them, but for names that begin with a dot) and globs. Default: the declaration files of TypeScript (`*.d.ts`)
   * below the `node_modules` that is nearest to the working folder.
   */
  readonly paths?: string | readonly string[] | undefined;
  readonly tokenizer: Tokenizer;
  /** How many tokens a window has. */
  readonly contextLength: number;
  /** The share that is held out, 0 to 0.5. Default 0.1. */
  readonly heldOut?: number;
  /** Of the order of training windows: a whole number of at least 0 and below 2⁶⁴. Default 0. */
  readonly seed?: number | bigint;
  /** How many tokens the model knows. Default: the tokenizer's number. */
  readonly vocabularySize?: number;
  /** Where token files are kept. Default: `orchard/tokens` in the user's cache. */
  readonly cacheFolder?: string;
  /** Called now and then while a token file is made; not where there is one from before. */
  readonly onProgress?: (progress: DataProgress) => void;
}

/** What was found and made. */
export interface DataReport {
  /** What was named, or the folder whose declaration files are the default. */
  readonly source: readonly string[];
  readonly files: number;
  /** Files that are text, each text once. */
  readonly documents: number;
  /** Of the documents. */
  readonly bytes: number;
  /** Files that are none, by reason. */
  readonly skipped: Readonly<Record<SkipReason, readonly string[]>>;
  readonly tokens: number;
  readonly trainTokens: number;
  readonly heldOutTokens: number;
  /** Whether whole documents are held out, or the end of the tokens. */
  readonly split: "documents" | "tail" | "none";
  /** The path of the token file. */
  readonly tokenFile: string;
  /** Whether the token file was there from before. */
  readonly cached: boolean;
  /** What a user should know, one sentence each. */
  readonly warnings: readonly string[];
}

/** Text to train on and text to evaluate on. */
export interface TextDataset {
  readonly train: TrainingWindows;
  readonly heldOut: HeldOutWindows;
  readonly report: DataReport;
}

const operation = "openTextDataset";
/** A GPT learns little from less. */
const SMALL_BYTES = 1_000_000;
/** Token files in the cache; those that were not used for longest are removed. */
const KEPT_FILES = 16;

/**
 * Opens texts as windows of tokens. Files that are binary or not UTF-8, empty ones and copies are left out and counted. Tokens are kept in a file, and
 * mapped; it is made anew where a file, a size, a time of change, the tokenizer or the held-out share is another.
 *
 * Held out are whole documents, chosen by their contents; where these do not come near the share, as with one file, the end of it.
 *
 * @example
 * const { train, heldOut, report } = await openTextDataset({ paths: "books", tokenizer: new Gpt2Tokenizer(), contextLength: 256 });
 * const { x, y } = train.next(12);
 * for (const { x, y } of heldOut.batches(12)) evaluate(x, y);
 *
 * @throws {DataError} `notFound` for what is not there; `nothingReadable`, `emptyFile`; `tooShort` where the text has no window;
 * `vocabularyTooSmall` where a token is beyond the model's vocabulary. @throws {ArgumentError} @throws {FileError}
 */
export async function openTextDataset(options: TextDatasetOptions): Promise<TextDataset> {
  const { tokenizer, contextLength, seed = 0 } = options;
  checkOptions(options);
  const { source, files, isDefault } = locate(options.paths);
  const folder = options.cacheFolder ?? join(cacheFolder(), "tokens");
  const { manifest, key, cached } = await tokensOf(options, files, folder);
  checkFit(manifest, contextLength, options.vocabularySize ?? tokenizer.vocabularySize);
  const all = TokenRange.open(operation, tokenPath(folder, key), manifest);
  const { trainTokens, tokens, fingerprint } = manifest;
  const train = new TrainingWindows(all.part(0, trainTokens), contextLength, BigInt(seed), fingerprint);
  const heldOut = new HeldOutWindows(all.part(trainTokens, tokens), contextLength);
  const warnings = warningsOf(manifest, heldOut, isDefault ? source : undefined);
  const { documents, bytes, skipped, split } = manifest;
  const found = { source, files: files.length, documents, bytes, skipped };
  const made = { tokens, trainTokens, heldOutTokens: tokens - trainTokens, split };
  return { train, heldOut, report: { ...found, ...made, tokenFile: tokenPath(folder, key), cached, warnings } };
}

function checkOptions({ contextLength, heldOut = 0.1, seed = 0 }: TextDatasetOptions): void {
  const check = (isRight: boolean, name: string, wanted: string, came: unknown) => {
    if (!isRight) throw new ArgumentError(operation, "invalidOption", `${name} is ${wanted}, ${String(came)} came`);
  };
  const isCount = Number.isSafeInteger(contextLength) && contextLength >= 1;
  check(isCount, "contextLength", "a whole number of at least 1", contextLength);
  check(heldOut >= 0 && heldOut <= 0.5, "heldOut", "a share from 0 to 0.5", heldOut);
  const isWord = (typeof seed === "bigint" || Number.isSafeInteger(seed)) && seed >= 0 && seed < 2n ** 64n;
  check(isWord, "seed", "a whole number of at least 0 and below 2^64", seed);
}

function locate(paths: TextDatasetOptions["paths"]): { source: string[]; files: FoundFile[]; isDefault: boolean } {
  if (paths !== undefined) {
    const source = typeof paths === "string" ? [paths] : [...paths];
    return { source, files: findFiles(operation, source), isDefault: false };
  }
  const { folder, files } = findDeclarations(operation, process.cwd());
  return { source: [folder], files, isDefault: true };
}

async function tokensOf(
  { tokenizer, heldOut = 0.1, onProgress = () => undefined }: TextDatasetOptions,
  files: readonly FoundFile[],
  folder: string,
): Promise<{ manifest: Manifest; key: string; cached: boolean }> {
  const key = keyOf(files, tokenizer, heldOut);
  withFileErrors(operation, folder, () => mkdirSync(folder, { recursive: true }));
  const known = await readManifest(folder, key);
  const manifest = known ?? (await buildTokens({ operation, files, tokenizer, heldOut, folder, key, onProgress }));
  withFileErrors(operation, folder, () => markUsed(folder, key));
  return { manifest, key, cached: known !== undefined };
}

function keyOf(files: readonly FoundFile[], tokenizer: Tokenizer, heldOut: number): string {
  const facts = [MANIFEST_VERSION, tokenizer.name, tokenizer.vocabularySize, heldOut];
  const list = files.map(({ path, byteLength, modified }) => [path, byteLength, modified]);
  return new Bun.CryptoHasher("sha256")
    .update(JSON.stringify([facts, list]))
    .digest("hex")
    .slice(0, 32);
}

/** Its time says when a token file was used last. A file that is removed stays for those who have it mapped. */
function markUsed(folder: string, key: string): void {
  const now = new Date();
  utimesSync(manifestPath(folder, key), now, now);
  const keys = readdirSync(folder).flatMap((name) => /^([0-9a-f]{32})\.json$/.exec(name)?.[1] ?? []);
  if (keys.length <= KEPT_FILES) return;
  const usedAt = (each: string) => statSync(manifestPath(folder, each), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const old = keys.map((each) => ({ each, time: usedAt(each) })).sort((a, b) => b.time - a.time);
  for (const { each } of old.slice(KEPT_FILES)) {
    remove(manifestPath(folder, each));
    remove(tokenPath(folder, each));
  }
}

function checkFit(
  { trainTokens, tokens, largestToken }: Manifest,
  contextLength: number,
  vocabularySize: number,
): void {
  if (trainTokens <= contextLength)
    throw new DataError(
      operation,
      "tooShort",
      `the text has ${tokens} tokens, ${trainTokens} of them to train on; a window of ${contextLength} and the token after it take ${contextLength + 1}: name more text, or a shorter context`,
    );
  if (largestToken >= vocabularySize)
    throw new DataError(
      operation,
      "vocabularyTooSmall",
      `the text has the token ${largestToken}, and the vocabulary ends at ${vocabularySize - 1}; give the model at least ${largestToken + 1}`,
    );
}

function warningsOf(manifest: Manifest, heldOut: HeldOutWindows, defaults: readonly string[] | undefined): string[] {
  const { bytes, documents, split } = manifest;
  const small =
    defaults === undefined
      ? `the text has only ${bytes} bytes`
      : `no data is named, and the ${documents} declaration files below ${defaults[0]} have only ${bytes} bytes; name a file, a folder or a glob`;
  const short = `${heldOut.tokenCount} tokens are held out, fewer than a window has: nothing will be evaluated`;
  return [...(bytes < SMALL_BYTES ? [small] : []), ...(split !== "none" && heldOut.windowCount === 0 ? [short] : [])];
}
