import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "../core/errors.ts";
import { aFunction, aNumber, aPath, either, listOf } from "../core/kinds.ts";
import { count } from "../core/options.ts";
import { type Kind, named, parameters, required } from "../core/parameters.ts";
import { cacheFolder } from "../core/paths.ts";
import { counted } from "../core/plural.ts";
import { withFileErrors } from "../io/file_errors.ts";
import { seed as aSeed } from "../random/kinds.ts";
import { buildTokens, type DataProgress } from "./build.ts";
import { type FoundFile, findDeclarations, findFiles } from "./paths.ts";
import type { SkipReason } from "./scan.ts";
import { cacheLimit, markUsed } from "./token_cache.ts";
import { MANIFEST_VERSION, type Manifest, readManifest, TokenRange, tokenPath } from "./token_file.ts";
import type { Tokenizer } from "./tokenizer.ts";
import { HeldOutWindows, TrainingWindows } from "./windows.ts";

/** Options of {@link openTextDataset}. */
export interface TextDatasetOptions {
  /**
   * Files, folders (read recursively, without names that begin with a dot) and globs. Default: TypeScript's declaration
   * files (`*.d.ts`) in the nearest `node_modules` at or above the working folder.
   */
  readonly paths?: string | readonly string[] | undefined;
  readonly tokenizer: Tokenizer;
  /** The number of tokens in a window. */
  readonly contextLength: number;
  /** The fraction that is held out, 0 to 0.5. Default 0.1. */
  readonly heldOut?: number;
  /** The seed of the order of training windows: a whole number from 0 to 2⁶⁴ − 1. Default 0. */
  readonly seed?: number | bigint;
  /** The size of the model's vocabulary. Default: the tokenizer's. */
  readonly vocabularySize?: number;
  /** The folder of token files. Default: `orchard/tokens` in the user's cache. */
  readonly cacheFolder?: string;
  /** Called at intervals while a token file is built; not called if a cached one is used. */
  readonly onProgress?: (progress: DataProgress) => void;
}

/** A report of the files that {@link openTextDataset} found and the data that it built. */
export interface DataReport {
  /** The given paths, or the folder of the default declaration files. */
  readonly source: readonly string[];
  readonly files: number;
  /** The number of text files, without duplicates. */
  readonly documents: number;
  /** The total size of the documents. */
  readonly bytes: number;
  /** Files that were skipped, by reason. */
  readonly skipped: Readonly<Record<SkipReason, readonly string[]>>;
  readonly tokens: number;
  readonly trainTokens: number;
  readonly heldOutTokens: number;
  /** Whether whole documents are held out, or the end of the tokens. */
  readonly split: "documents" | "tail" | "none";
  /** The path of the token file. */
  readonly tokenFile: string;
  /** Whether the token file existed already. */
  readonly cached: boolean;
  /** Warnings for the user, one sentence each. */
  readonly warnings: readonly string[];
}

/** Text to train on and text to evaluate on. */
export interface TextDataset {
  readonly train: TrainingWindows;
  readonly heldOut: HeldOutWindows;
  readonly report: DataReport;
}

const operation = "openTextDataset";
/** Less text than this gets a warning: a GPT learns little from it. */
const SMALL_BYTES = 1_000_000;

/**
 * Opens texts as windows of tokens. Binary files, files that are not UTF-8, empty files and duplicates are skipped and
 * counted. The tokens are in a cached file, which is memory-mapped. It is rebuilt when the list of files, a file's size
 * or modification time, the tokenizer or the held-out fraction changes. The cache keeps the 16 most recently used
 * files, up to `ORCHARD_TOKEN_CACHE_LIMIT` bytes.
 *
 * Whole documents are held out, chosen by their contents. If these have less than half or more than twice the fraction
 * of the tokens, as with a single file, the end of the text is held out instead.
 *
 * @example
 * const tokenizer = new Gpt2Tokenizer();
 * const { train, heldOut, report } = await openTextDataset({ paths: "books", tokenizer, contextLength: 256 });
 * const { x, y } = train.next(12);
 * for (const { x, y } of heldOut.batches(12)) evaluate(x, y);
 *
 * @throws {DataError} `notFound` for a path that does not exist; `nothingReadable` and `emptyFile` for files without
 * text; `tooShort` for less than one window; `vocabularyTooSmall` for a token beyond the model's vocabulary.
 * @throws {ArgumentError} for an invalid option. @throws {FileError} if the cache can't be written.
 */
export function openTextDataset(options: TextDatasetOptions): Promise<TextDataset>;
export async function openTextDataset(...values: unknown[]): Promise<TextDataset> {
  const settings = readOptions(values);
  const { tokenizer, contextLength, seed } = settings;
  const { source, files, isDefault } = locate(operation, settings.paths);
  const folder = settings.cacheFolder ?? join(cacheFolder(), "tokens");
  const { manifest, key, cached } = await tokensOf(settings, files, folder);
  checkFit(manifest, contextLength, settings.vocabularySize ?? tokenizer.vocabularySize);
  const all = TokenRange.open(operation, tokenPath(folder, key), manifest);
  const { trainTokens, tokens, fingerprint } = manifest;
  const train = new TrainingWindows(all.part(0, trainTokens), contextLength, seed, fingerprint);
  const heldOut = new HeldOutWindows(all.part(trainTokens, tokens), contextLength);
  const warnings = warningsOf(manifest, heldOut, isDefault ? source : undefined);
  const { documents, bytes, skipped, split } = manifest;
  const found = { source, files: files.length, documents, bytes, skipped };
  const made = { tokens, trainTokens, heldOutTokens: tokens - trainTokens, split };
  return { train, heldOut, report: { ...found, ...made, tokenFile: tokenPath(folder, key), cached, warnings } };
}

const size: Kind<number> = aNumber({ ...count, expected: "a whole number of at least 1" });

const aTokenizer: Kind<Tokenizer> = {
  expected: "a tokenizer",
  parse(value) {
    const given = value as Partial<Tokenizer> | null | undefined;
    return typeof given?.encode === "function" && typeof given.name === "string" ? (value as Tokenizer) : undefined;
  },
};

const readOptions = parameters(operation, {
  paths: named(either(aPath, listOf(aPath, "a list of paths"))),
  tokenizer: required(aTokenizer),
  contextLength: required(size),
  heldOut: named(
    aNumber({ holds: (fraction) => fraction >= 0 && fraction <= 0.5, expected: "a fraction from 0 to 0.5" }),
    0.1,
  ),
  seed: named(aSeed, 0n),
  vocabularySize: named(size),
  cacheFolder: named(aPath),
  onProgress: named(aFunction<(progress: DataProgress) => void>(), () => undefined),
});
type Settings = ReturnType<typeof readOptions>;

/** Finds the files of paths. @throws {DataError} */
export function locate(
  operation: string,
  paths: TextDatasetOptions["paths"],
): { source: string[]; files: FoundFile[]; isDefault: boolean } {
  if (paths !== undefined) {
    const source = typeof paths === "string" ? [paths] : [...paths];
    return { source, files: findFiles(operation, source), isDefault: false };
  }
  const { folder, files } = findDeclarations(operation, process.cwd());
  return { source: [folder], files, isDefault: true };
}

async function tokensOf(
  { tokenizer, heldOut, onProgress }: Settings,
  files: readonly FoundFile[],
  folder: string,
): Promise<{ manifest: Manifest; key: string; cached: boolean }> {
  const maxBytes = cacheLimit(operation); // read it before the work, because it throws for an invalid number
  const key = keyOf(files, tokenizer, heldOut);
  withFileErrors(operation, folder, () => mkdirSync(folder, { recursive: true }));
  const known = await readManifest(folder, key);
  const manifest = known ?? (await buildTokens({ operation, files, tokenizer, heldOut, folder, key, onProgress }));
  withFileErrors(operation, folder, () => markUsed(folder, key, maxBytes));
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

function checkFit(
  { trainTokens, tokens, largestToken }: Manifest,
  contextLength: number,
  vocabularySize: number,
): void {
  const least = contextLength + 1; // a window and the token after it
  if (trainTokens < least)
    throw new DataError(
      operation,
      "tooShort",
      `expected at least ${least} training tokens, got ${trainTokens} of ${tokens}; use more text, or a shorter ` +
        "context",
    );
  if (largestToken >= vocabularySize)
    throw new DataError(
      operation,
      "vocabularyTooSmall",
      `expected a vocabulary of at least ${largestToken + 1} tokens, got ${vocabularySize}`,
    );
}

function warningsOf(manifest: Manifest, heldOut: HeldOutWindows, defaults: readonly string[] | undefined): string[] {
  const { bytes, documents, split } = manifest;
  const files = documents === 1 ? "the declaration file" : `the ${documents} declaration files`;
  const small =
    defaults === undefined
      ? `the text has only ${counted(bytes, "byte")}`
      : `no data was named, and ${files} in ${defaults[0]} ${documents === 1 ? "has" : "have"} only ` +
        `${counted(bytes, "byte")}; name a file, a folder or a glob`;
  const tokens = `${counted(heldOut.tokenCount, "token")} ${heldOut.tokenCount === 1 ? "is" : "are"}`;
  const short = `only ${tokens} held out, less than one window: there will be no evaluation`;
  return [...(bytes < SMALL_BYTES ? [small] : []), ...(split !== "none" && heldOut.windowCount === 0 ? [short] : [])];
}
