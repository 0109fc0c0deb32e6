/** Opens the text of a run as windows of tokens, with its tokenizer. */
import { join } from "node:path";
import { BpeTokenizer } from "../data/bpe_tokenizer.ts";
import { ByteTokenizer } from "../data/byte_tokenizer.ts";
import { openTextDataset, type TextDataset } from "../data/dataset.ts";
import { Gpt2Tokenizer } from "../data/gpt2_tokenizer.ts";
import type { Tokenizer } from "../data/tokenizer.ts";
import { trainOnFiles } from "../data/train_files.ts";
import { writeAtomically } from "../io/atomic.ts";
import type { Settings } from "./settings.ts";

/** A trained tokenizer in a checkpoint: the contents of its `tokenizer.json`. */
export type SavedTokenizer = ReturnType<BpeTokenizer["toJSON"]> | null;

/** Creates the tokenizer of a new run. @throws {DataError} for text that does not exist. */
export async function makeTokenizer(settings: Settings): Promise<Tokenizer> {
  const { tokenizer, vocabulary, heldOut } = settings;
  return tokenizer === "bpe"
    ? trainOnFiles("train", { paths: pathsOf(settings), heldOut, size: vocabulary })
    : tokenizerOf(settings, null);
}

/** Restores the tokenizer of a saved run. @throws {ArgumentError} if a trained one is damaged. */
export function tokenizerOf({ tokenizer }: Pick<Settings, "tokenizer">, saved: unknown): Tokenizer {
  if (tokenizer === "bpe") return BpeTokenizer.fromJSON(saved);
  return tokenizer === "bytes" ? new ByteTokenizer() : new Gpt2Tokenizer();
}

export const savedTokenizer = (tokenizer: Tokenizer): SavedTokenizer =>
  tokenizer instanceof BpeTokenizer ? tokenizer.toJSON() : null;

/** The file in a run's folder with a tokenizer that was trained on its text. */
const TOKENIZER_FILE = "tokenizer.json";

/** Writes the tokenizer into a run's folder for other programs. Checkpoints contain it too. */
export async function writeTokenizer(tokenizer: Tokenizer, folder: string): Promise<void> {
  const saved = savedTokenizer(tokenizer);
  const path = join(folder, TOKENIZER_FILE);
  if (saved !== null) await writeAtomically("train", path, (file) => file.write(Buffer.from(JSON.stringify(saved))));
}

const pathsOf = ({ data }: Settings): readonly string[] | undefined => (data.length > 0 ? data : undefined);

/** Opens the text. @throws {DataError} for text that does not exist or is too short. */
export const openText = (settings: Settings, tokenizer: Tokenizer): Promise<TextDataset> =>
  openTextDataset({
    tokenizer,
    paths: pathsOf(settings),
    contextLength: settings.context,
    heldOut: settings.heldOut,
    seed: settings.seed,
  });
