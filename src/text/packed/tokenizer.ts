/** Packs tokenizers by the kind of their model. */
import type { TokenizerJson } from "../tokenizer_file.ts";
import { packBpe } from "./bpe.ts";
import type { PackedTokenizer } from "./file.ts";
import { packUnigram } from "./unigram.ts";

/**
 * Packs a validated tokenizer. Returns undefined if its vocabulary can't be packed, or parses fast, such as
 * WordPiece's.
 */
export function packTokenizer(json: TokenizerJson): PackedTokenizer | undefined {
  const { type, vocab, merges } = json.model;
  if (type === "BPE") {
    const packed = packBpe(
      vocab as Readonly<Record<string, number>>,
      merges as readonly (string | readonly string[])[],
    );
    return packed && { json: { ...json, model: { ...json.model, vocab: {}, merges: [] } }, packed };
  }
  if (type !== "Unigram") return undefined;
  const packed = packUnigram(vocab as readonly (readonly [string, number])[], json.model["unk_id"]);
  return packed && { json: { ...json, model: { ...json.model, vocab: [["", 0]] } }, packed };
}
