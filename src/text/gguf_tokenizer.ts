/**
 * Converts the tokenizers of GGUF files to the format of `tokenizer.json`. The keys match llama.cpp's converter.
 */
import { ArgumentError } from "../core/errors.ts";
import { patternsOf } from "./gguf_patterns.ts";
import type { Splitter } from "./pretrained_tokenizer.ts";
import { normalizerOf } from "./sentencepiece/charsmap.ts";
import { splitterOf } from "./sentencepiece/encode.ts";
import type { SentencePieceModel } from "./sentencepiece/model.ts";
import type { AddedToken, TokenizerConfig, TokenizerJson } from "./tokenizer_file.ts";

/** The metadata of a GGUF file. */
export type Metadata = Readonly<Record<string, { readonly value: unknown } | undefined>>;

/** The tokenizer data of a GGUF file. */
interface Vocabulary {
  readonly tokens: readonly string[];
  readonly scores: ArrayLike<number>;
  readonly types: ArrayLike<number>;
  readonly merges: readonly string[];
  readonly read: (key: string) => unknown;
}

/** Types of tokens. Unknown, control and user-defined tokens are matched before the text is split. */
const NORMAL = 1;
const UNKNOWN = 2;
const CONTROL = 3;
const OF_USER = 4;
const isAdded = (type: number | undefined): boolean => type === UNKNOWN || type === CONTROL || type === OF_USER;

/** Reads the tokenizer. @throws {ArgumentError} for a file without a tokenizer or with an unsupported kind. */
export function tokenizerOfGguf(metadata: Metadata): {
  readonly json: TokenizerJson;
  readonly config: TokenizerConfig;
  /** Replaces the model of tokenizer.json: splits the text between added tokens. Undefined for other kinds. */
  readonly splitter: Splitter | undefined;
} {
  const read = (key: string) => metadata[`tokenizer.ggml.${key}`]?.value;
  const model = read("model");
  if (typeof model !== "string" || !Array.isArray(read("tokens"))) throw unsupported("tokenizer.ggml.model", "none");
  const vocabulary: Vocabulary = {
    tokens: read("tokens") as string[],
    scores: listOf(read("scores")),
    types: listOf(read("token_type")),
    merges: (read("merges") ?? []) as string[],
    read,
  };
  const make = makers[model];
  if (!make) throw unsupported("tokenizer.ggml.model", model);
  const nameOf = (key: string) => vocabulary.tokens[Number(read(`${key}_token_id`) ?? -1)];
  const [bos_token, eos_token] = [nameOf("bos") ?? null, nameOf("eos") ?? null];
  return {
    json: make(vocabulary),
    config: { bos_token, eos_token, chat_template: metadata["tokenizer.chat_template"]?.value },
    splitter: model === "t5" ? unigramSplitter(vocabulary) : undefined,
  };
}

const listOf = (value: unknown): ArrayLike<number> => (value ?? []) as ArrayLike<number>;

const unsupported = (what: string, got: string): ArgumentError =>
  new ArgumentError(
    "loadTokenizer",
    "unsupportedTokenizer",
    `expected ${what} to be one of ${Object.keys(makers).join(", ")}, got ${got}; to use another tokenizer, ` +
      "put a tokenizer.json next to the file",
  );

const makers: Readonly<Record<string, (vocabulary: Vocabulary) => TokenizerJson>> = {
  gpt2: byteLevel,
  llama: sentencePieceBpe,
  t5: unigram,
  bert: wordPiece,
};

/** Byte-level BPE that splits words by `tokenizer.ggml.pre`. */
function byteLevel(vocabulary: Vocabulary): TokenizerJson {
  const patterns = patternsOf(String(vocabulary.read("pre") ?? "default"));
  const toBytes = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };
  const isNfc = vocabulary.read("pre") === "qwen2";
  const vocab = idsOf(vocabulary.tokens);
  // llama.cpp ignores merges of unknown tokens, which never apply.
  const merges = vocabulary.merges.map(pairOf).filter((pair) => pair.every((part) => Object.hasOwn(vocab, part)));
  return {
    normalizer: isNfc ? { type: "NFC" } : null,
    pre_tokenizer: { type: "Sequence", pretokenizers: [...patterns, toBytes] },
    decoder: { type: "ByteLevel" },
    post_processor: beginning(vocabulary, false),
    added_tokens: addedTokens(vocabulary),
    model: {
      type: "BPE",
      vocab,
      merges,
      ignore_merges: ignoresMerges(vocabulary),
    },
  };
}

/** Whether words in the vocabulary bypass merges: in Llama 3, no merges produce some words. */
const ignoresMerges = ({ read }: Vocabulary): boolean => /^llama-bpe$|^llama3$|^tekken$/.test(String(read("pre")));

/** Splits a merge at the space between its tokens, which contain none. */
const pairOf = (merge: string): [string, string] => {
  const at = merge.indexOf(" ", 1);
  return [merge.slice(0, at), merge.slice(at + 1)];
};

/** SentencePiece prefixes texts with a space, unless the file disables it, and writes spaces as `▁`. */
const spaces = (vocabulary: Vocabulary) => ({
  normalizer: {
    type: "Sequence",
    normalizers: [
      ...(addsSpace(vocabulary) ? [{ type: "Prepend", prepend: "▁" }] : []),
      { type: "Replace", pattern: { String: " " }, content: "▁" },
    ],
  },
  decoder: {
    type: "Sequence",
    decoders: [
      { type: "Replace", pattern: { String: "▁" }, content: " " },
      { type: "ByteFallback" },
      { type: "Fuse" },
      ...(addsSpace(vocabulary) ? [{ type: "Strip", content: " ", start: 1, stop: 0 }] : []),
    ],
  },
});

const addsSpace = ({ read }: Vocabulary): boolean => read("add_space_prefix") !== false;

/**
 * SentencePiece's BPE merges the adjacent tokens whose result has the highest score. So its merges are the vocabulary
 * in order of scores; for equal results, the pair that is first in the vocabulary wins.
 */
function sentencePieceBpe(vocabulary: Vocabulary): TokenizerJson {
  const ids = new Map(vocabulary.tokens.map((token, id) => [token, id]));
  const merges: { readonly pair: [string, string]; readonly score: number }[] = [];
  const idOf = (part: string): number => ids.get(part) ?? vocabulary.tokens.length;
  for (const [id, token] of vocabulary.tokens.entries()) {
    if (isAdded(vocabulary.types[id])) continue;
    const characters = [...token];
    const found: [string, string][] = [];
    for (let at = 1; at < characters.length; at++) {
      const pair: [string, string] = [characters.slice(0, at).join(""), characters.slice(at).join("")];
      if (pair.every((part) => ids.has(part))) found.push(pair);
    }
    found.sort(([a, b], [c, d]) => idOf(a) - idOf(c) || idOf(b) - idOf(d));
    for (const pair of found) merges.push({ pair, score: vocabulary.scores[id] });
  }
  merges.sort((a, b) => b.score - a.score); // the sort is stable: equal scores keep the vocabulary's order
  const unknown = vocabulary.tokens[Number(vocabulary.read("unknown_token_id") ?? 0)];
  return {
    ...spaces(vocabulary),
    pre_tokenizer: null,
    post_processor: beginning(vocabulary, true),
    added_tokens: addedTokens(vocabulary),
    model: {
      type: "BPE",
      vocab: Object.fromEntries(ids),
      merges: merges.map(({ pair }) => pair),
      unk_token: unknown,
      fuse_unk: true,
      byte_fallback: true,
    },
  };
}

/** Describes SentencePiece's unigram model. A splitter normalizes and splits texts like SentencePiece. */
function unigram(vocabulary: Vocabulary): TokenizerJson {
  return {
    normalizer: null,
    pre_tokenizer: null,
    decoder: spaces(vocabulary).decoder,
    post_processor: beginning(vocabulary, false, true),
    added_tokens: addedTokens(vocabulary),
    model: {
      type: "Unigram",
      unk_id: unknownOf(vocabulary),
      vocab: vocabulary.tokens.map((token, id) => [token, vocabulary.scores[id]]),
      byte_fallback: false, // the splitter implements byte fallback
    },
  };
}

const unknownOf = ({ read }: Vocabulary): number => Number(read("unknown_token_id") ?? 0);
const hasBytes = ({ tokens }: Vocabulary): boolean => tokens.includes("<0x00>");

function unigramSplitter(vocabulary: Vocabulary): Splitter {
  const { tokens, scores, types, read } = vocabulary;
  const charsmap = (read("precompiled_charsmap") ?? []) as ArrayLike<number>;
  const unknown = unknownOf(vocabulary);
  const model: SentencePieceModel = {
    pieces: tokens.map((text, id) => ({ text, score: scores[id] ?? 0, type: types[id] ?? NORMAL })),
    kind: "unigram",
    byteFallback: hasBytes(vocabulary),
    unknown,
    charsmap: Uint8Array.from(charsmap),
    addsPrefix: addsSpace(vocabulary),
    trimsSpaces: read("remove_extra_whitespaces") === true,
  };
  const [normalize, split, known] = [normalizerOf(model), splitterOf(model), new Set(tokens)];
  const unknownText = tokens[unknown] ?? "";
  return (text) => split(normalize(text)).map((part) => (known.has(part.text) ? part.text : unknownText));
}

/**
 * BERT's WordPiece. llama.cpp's converter writes the start of a word as `▁`, and its continuation without `##`. It does
 * not write whether texts are converted to lower case; the vocabulary shows it.
 */
function wordPiece(vocabulary: Vocabulary): TokenizerJson {
  const { tokens, types, read } = vocabulary;
  const original = tokens.map((token, id) => {
    if (isAdded(types[id])) return token;
    return token.startsWith("▁") ? token.slice(1) : `##${token}`;
  });
  const isCased = original.some((token, id) => types[id] === NORMAL && !token.startsWith("[") && /[A-Z]/.test(token));
  const unknown = tokens[Number(read("unknown_token_id") ?? -1)] ?? "[UNK]";
  return {
    normalizer: {
      type: "BertNormalizer",
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase: !isCased,
    },
    pre_tokenizer: { type: "BertPreTokenizer" },
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    post_processor: between(vocabulary),
    added_tokens: addedTokens(vocabulary),
    model: {
      type: "WordPiece",
      vocab: idsOf(original),
      unk_token: unknown,
      continuing_subword_prefix: "##",
      max_input_chars_per_word: 100,
    },
  };
}

/** Puts texts between `[CLS]` and `[SEP]`; the second text of a pair has token type 1. */
function between({ tokens, read }: Vocabulary): object {
  const found = (keys: readonly string[], usual: string) => {
    const id = keys.map((key) => read(`${key}_token_id`)).find((value) => value !== undefined);
    const token = Number(id ?? tokens.indexOf(usual));
    return { id: tokens[token] ?? usual, token };
  };
  // The key is misspelt in the format.
  const [start, end] = [found(["cls", "bos"], "[CLS]"), found(["seperator", "eos"], "[SEP]")];
  const special = ({ id }: { readonly id: string }, type: number) => ({ SpecialToken: { id, type_id: type } });
  const text = (id: string, type: number) => ({ Sequence: { id, type_id: type } });
  const single = [special(start, 0), text("A", 0), special(end, 0)];
  return {
    type: "TemplateProcessing",
    single,
    pair: [...single, text("B", 1), special(end, 1)],
    special_tokens: Object.fromEntries([start, end].map(({ id, token }) => [id, { id, ids: [token], tokens: [id] }])),
  };
}

const idsOf = (tokens: readonly string[]): Record<string, number> =>
  Object.fromEntries(tokens.map((token, id) => [token, id]));

function addedTokens({ tokens, types }: Vocabulary): AddedToken[] {
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  return tokens.flatMap((content, id) =>
    isAdded(types[id]) ? [{ id, content, special: types[id] !== OF_USER, ...flags }] : [],
  );
}

/** Adds tokens at the start and end of a text, if the file requests them or else if the defaults do. */
function beginning({ tokens, read }: Vocabulary, begin: boolean, end = false): object | null {
  const begins = (read("add_bos_token") ?? begin) ? specialOf(tokens, read("bos_token_id")) : undefined;
  const ends = (read("add_eos_token") ?? end) === true ? specialOf(tokens, read("eos_token_id")) : undefined;
  if (!begins && !ends) return null;
  const text = { Sequence: { id: "A", type_id: 0 } };
  const place = (token: { id: string } | undefined) => (token ? [{ SpecialToken: { id: token.id, type_id: 0 } }] : []);
  const used = [begins, ends].filter((token) => token !== undefined);
  const single = [...place(begins), text, ...place(ends)];
  return {
    type: "TemplateProcessing",
    single,
    pair: [...single, { Sequence: { id: "B", type_id: 1 } }],
    special_tokens: Object.fromEntries(used.map(({ id, token }) => [id, { id, ids: [token], tokens: [id] }])),
  };
}

function specialOf(
  tokens: readonly string[],
  id: unknown,
): { readonly id: string; readonly token: number } | undefined {
  const token = Number(id ?? -1);
  const content = tokens[token];
  return content === undefined ? undefined : { id: content, token };
}
