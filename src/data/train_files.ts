/** Trains a tokenizer on the files of a data set. */
import { BpeTokenizer } from "./bpe_tokenizer.ts";
import { trainVocabulary } from "./bpe_trainer.ts";
import { splitDocuments } from "./build.ts";
import { locate } from "./dataset.ts";
import { textParts } from "./read.ts";
import { type Document, scanFiles } from "./scan.ts";

/** The training text of a tokenizer. */
export interface TrainingText {
  /** Paths, as in `openTextDataset`. */
  readonly paths: readonly string[] | undefined;
  /** The fraction of the text that is held out: the tokenizer does not see it either. */
  readonly heldOut: number;
  /** The number of tokens. */
  readonly size: number;
}

/** The maximum amount of text to read, which is enough to find the most frequent pairs. */
const MOST_BYTES = 2 ** 24;

/**
 * Trains a tokenizer. Without any text, its tokens are only the bytes. @throws {DataError} for paths that do not exist.
 */
export async function trainOnFiles(operation: string, { paths, heldOut, size }: TrainingText): Promise<BpeTokenizer> {
  const { documents } = await scanFiles(locate(operation, paths).files, () => undefined);
  const { train } = splitDocuments(documents, heldOut);
  return new BpeTokenizer(trainVocabulary(textsOf(train), size));
}

/** Reads documents in the order of their hashes, so that any prefix is a random sample. */
function* textsOf(documents: readonly Document[]): Generator<string> {
  let bytes = 0;
  for (const { path, byteLength } of documents.toSorted((a, b) => (a.hash < b.hash ? -1 : 1))) {
    if (bytes >= MOST_BYTES) return;
    bytes += byteLength;
    yield* textParts(path);
  }
}
