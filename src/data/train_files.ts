/** Trains a tokenizer on the files that a data set is made of. */
import { BpeTokenizer } from "./bpe_tokenizer.ts";
import { trainVocabulary } from "./bpe_trainer.ts";
import { splitDocuments } from "./build.ts";
import { locate } from "./dataset.ts";
import { textParts } from "./read.ts";
import { type Document, scanFiles } from "./scan.ts";

/** What a tokenizer is trained on. */
export interface TrainingText {
  /** As those of `openTextDataset`. */
  readonly paths: readonly string[] | undefined;
  /** The fraction of the text that is held out: the tokenizer does not see it either. */
  readonly heldOut: number;
  /** The number of tokens. */
  readonly size: number;
}

/** More text than this is not read: the most frequent pairs are known by then. */
const MOST_BYTES = 2 ** 24;

/** @throws {DataError} for paths that do not exist. Without any text, the tokens are the bytes alone. */
export async function trainOnFiles(operation: string, { paths, heldOut, size }: TrainingText): Promise<BpeTokenizer> {
  const { documents } = await scanFiles(locate(operation, paths).files, () => undefined);
  const { train } = splitDocuments(documents, heldOut);
  return new BpeTokenizer(trainVocabulary(textsOf(train), size));
}

/** Documents in the order of their hashes, as far as they are read: any part of them is a sample. */
function* textsOf(documents: readonly Document[]): Generator<string> {
  let bytes = 0;
  for (const { path, byteLength } of documents.toSorted((a, b) => (a.hash < b.hash ? -1 : 1))) {
    if (bytes >= MOST_BYTES) return;
    bytes += byteLength;
    yield* textParts(path);
  }
}
