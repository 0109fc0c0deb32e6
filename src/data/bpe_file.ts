/** Reads and writes `tokenizer.json`, in which Hugging Face's libraries store tokenizers. */
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { isJsonObject, type Json } from "../io/json.ts";
import type { Vocabulary } from "./bpe_trainer.ts";
import { byteCharacters, bytesOfText, END_OF_TEXT, WORD_PATTERN } from "./bpe_words.ts";

/** A byte-level byte pair encoding, as JSON. */
export type TokenizerFile = ReturnType<typeof tokenizerFile>;

/**
 * The settings for splitting text into words and for decoding, which are the same in every file that this module
 * writes.
 */
const pipeline = {
  normalizer: null,
  pre_tokenizer: {
    type: "Sequence",
    pretokenizers: [
      { type: "Split", pattern: { Regex: WORD_PATTERN }, behavior: "Isolated", invert: false },
      { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false },
    ],
  },
  post_processor: null,
  decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
} as const;

const endOfText = {
  id: 0,
  content: END_OF_TEXT,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: true,
} as const;

export const tokenizerFile = ({ tokens, merges }: Vocabulary) => ({
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: [endOfText],
  ...pipeline,
  model: {
    type: "BPE",
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    ignore_merges: false,
    vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
    merges: merges.map(([left, right]): [string, string] => [tokens[left], tokens[right]]),
  },
});

/**
 * Reads the vocabulary from a `tokenizer.json`.
 *
 * @throws {ArgumentError} `invalidOperand` if the file is damaged, or was not written by a BpeTokenizer.
 */
export function readVocabulary(operation: string, given: unknown): Vocabulary {
  const json = given as Json | undefined;
  const fail = (problem: string) =>
    new ArgumentError(operation, "invalidOperand", `expected the tokenizer.json of a BpeTokenizer: ${problem}`);
  if (!isJsonObject(json)) throw fail(`expected an object, got ${describeValue(given)}`);
  const { model } = json;
  if (!isJsonObject(model) || !isJsonObject(model["vocab"]) || !Array.isArray(model["merges"]))
    throw fail("it has no model with a vocabulary and merges");
  for (const [name, value] of Object.entries(pipeline))
    if (JSON.stringify(json[name]) !== JSON.stringify(value)) throw fail(`its ${name} is not that of a BpeTokenizer`);
  const tokens = tokensOf(model["vocab"], fail);
  const ids = new Map(tokens.map((token, id) => [token, id]));
  const merges = model["merges"].map((merge) => {
    const [left, right] = Array.isArray(merge) ? merge.map((text) => ids.get(String(text))) : [];
    if (left === undefined || right === undefined || !ids.has(tokens[left] + tokens[right]))
      throw fail(`its vocabulary lacks the tokens of the merge ${JSON.stringify(merge)}`);
    return [left, right] as const;
  });
  return { tokens, merges };
}

function tokensOf(vocabulary: Readonly<Record<string, unknown>>, fail: (problem: string) => Error): string[] {
  const tokens: string[] = [];
  const entries = Object.entries(vocabulary);
  for (const [token, id] of entries) {
    if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || id >= entries.length || tokens[id] !== undefined)
      throw fail(`expected unique ids from 0, got ${describeValue(id)} for ${JSON.stringify(token)}`);
    if (id > 0 && bytesOfText(token) === undefined) throw fail(`${JSON.stringify(token)} does not represent bytes`);
    tokens[id] = token;
  }
  if (tokens[0] !== END_OF_TEXT) throw fail(`its first token is not ${END_OF_TEXT}`);
  const missing = byteCharacters.find((character) => vocabulary[character] === undefined);
  if (missing !== undefined) throw fail(`it has no token for the byte ${JSON.stringify(missing)}`);
  return tokens;
}
