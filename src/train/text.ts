/** Opens the text of a run as windows of tokens. */
import { ByteTokenizer } from "../data/byte_tokenizer.ts";
import { openTextDataset, type TextDataset } from "../data/dataset.ts";
import { Gpt2Tokenizer } from "../data/gpt2_tokenizer.ts";
import type { Tokenizer } from "../data/tokenizer.ts";
import type { Settings } from "./settings.ts";

const makers: Readonly<Record<Settings["tokenizer"], () => Tokenizer>> = {
  bytes: () => new ByteTokenizer(),
  gpt2: () => new Gpt2Tokenizer(),
};

export const tokenizerOf = ({ tokenizer }: Settings): Tokenizer => makers[tokenizer]();

/** @throws {DataError} for text that does not exist or is too short. */
export const openText = (settings: Settings, tokenizer: Tokenizer): Promise<TextDataset> =>
  openTextDataset({
    tokenizer,
    paths: settings.data.length > 0 ? settings.data : undefined,
    contextLength: settings.context,
    heldOut: settings.heldOut,
    seed: settings.seed,
  });
