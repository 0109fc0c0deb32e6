import type { Tokenizer as Encoder } from "@huggingface/tokenizers";
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { aFunction, anObject, flag, someNumber, text } from "../core/kinds.ts";
import { type Kind, named, operand, parameters, reading } from "../core/parameters.ts";
import { checkText, decodeAll, PrintedTokenizer, TextStream, type Tokenizer } from "../data/tokenizer.ts";
import type { TemplateTokens } from "./chat_template.ts";
import { withExactSteps } from "./exact_steps.ts";
import { spansOf, type TextSpan } from "./offsets.ts";
import { PackedBpe } from "./packed/bpe.ts";
import type { Packed } from "./packed/file.ts";
import { installPacked } from "./packed/install.ts";
import { PackedUnigram } from "./packed/unigram.ts";
import { type Spelling, spellingOf } from "./token_bytes.ts";
import { checkConfig, checkTokenizer } from "./tokenizer_check.ts";
import { contentOf, type TokenizerConfig, type TokenizerJson } from "./tokenizer_file.ts";

/** Options of {@link PretrainedTokenizer.encode}. */
export interface EncodeOptions {
  /** Whether to add tokens at the start or end of a text, as the model's file defines. Default true. */
  readonly addSpecialTokens?: boolean | undefined;
}

/** Options of {@link PretrainedTokenizer.decode} and {@link PretrainedTokenizer.decoder}. */
export interface DecodeOptions {
  /** Whether to omit special tokens, such as those that end a text. Default true. */
  readonly skipSpecialTokens?: boolean | undefined;
  /**
   * Whether the tokens start a text. Some encodings insert a space at the start, which decoding then removes. Default
   * true for `decode`, false for `decoder`, whose tokens continue a text.
   */
  readonly isStart?: boolean | undefined;
}

const aPackedVocabulary: Kind<Packed> = {
  expected: "a packed vocabulary",
  parse: (value) => (value instanceof PackedBpe || value instanceof PackedUnigram ? value : undefined),
};

/** @internal Splits a text without added tokens into tokens of the vocabulary. */
export type Splitter = (text: string) => string[];

const readTokenizer = parameters("PretrainedTokenizer", {
  json: operand(anObject<TokenizerJson>("the contents of a tokenizer.json")),
  config: named(anObject<TokenizerConfig>("the contents of a tokenizer_config.json"), {}),
  name: named(text, "pretrained"),
  packed: named(aPackedVocabulary),
  splitter: named(aFunction<Splitter>()),
});
const readEncode = parameters("PretrainedTokenizer.encode", {
  text: operand(text),
  addSpecialTokens: named(flag, true),
});
const decodeParameters = { skipSpecialTokens: named(flag, true), isStart: named(flag) } as const;
const readDecoder = parameters("PretrainedTokenizer.decoder", decodeParameters);
const readDecode = parameters("PretrainedTokenizer.decode", {
  tokens: operand({ expected: "a list of tokens", parse: (value: unknown) => value as Iterable<number> }),
  ...decodeParameters,
});

/** Options of {@link PretrainedTokenizer.encodePair}. */
export interface EncodePairOptions extends EncodeOptions {
  /**
   * The maximum number of tokens; the longer text is truncated first. With `addSpecialTokens`, special tokens count
   * too, and are never truncated. Default: no limit.
   */
  readonly maxTokens?: number | undefined;
}

/** Two texts as one list of tokens, such as `[CLS] text [SEP] pair [SEP]`. */
export interface EncodedPair {
  readonly tokens: number[];
  /** For each token the number of its text, as the model was trained: mostly 0 for the first, and 1 for the second. */
  readonly tokenTypes: number[];
}

/** @internal Where each token of an {@link EncodedPair} comes from. */
export interface EncodedInputs extends EncodedPair {
  /** The text (0 or 1) of each token, and the token's index in it; null for special tokens. */
  readonly origins: readonly (readonly [text: 0 | 1, index: number] | null)[];
  /** Returns the position of each token within its text. */
  spans(text: 0 | 1): TextSpan[];
}

const readPair = parameters("PretrainedTokenizer.encodePair", {
  text: operand(text),
  pair: operand(text),
  addSpecialTokens: named(flag, true),
  maxTokens: named(someNumber),
});

const SPACE = 0x20;

/**
 * A model's tokenizer from its `tokenizer.json`: byte-level BPE, SentencePiece's BPE and unigram, or WordPiece.
 * Encoding uses the npm package `@huggingface/tokenizers`. Special tokens in a text are encoded as special tokens, so
 * be careful with untrusted text.
 *
 * @example
 * const tokenizer = text.loadTokenizer("llama-3.2-1b");
 * const tokens = tokenizer.encode("Hello"); // [128000, 9906]
 * tokenizer.decode(tokens); // "Hello"
 */
export class PretrainedTokenizer extends PrintedTokenizer implements Tokenizer {
  readonly name: string;
  /** The number of tokens, including added ones. A model's vocabulary may be larger. */
  readonly vocabularySize: number;
  readonly endOfText: number | null;
  /** The token at the start of a text; null if there is none. */
  readonly beginOfText: number | null;
  readonly separator: number;
  /** The token that stands for a word to predict, such as `[MASK]`; null if there is none. */
  readonly mask: number | null;
  /** The token with which shorter texts are padded; null if there is none. */
  readonly padding: number | null;
  private readonly encoder: Encoder;
  private readonly spelling: Spelling;
  private readonly added = new Map<number, Uint8Array>();
  private readonly special = new Set<number>();
  private readonly known: (Uint8Array | undefined)[] = [];

  /**
   * @internal See `loadTokenizer`. With a packed vocabulary, `json` is a checked file without vocabulary. A splitter
   * replaces the model that `json` describes.
   *
   * @throws {ArgumentError} for an unsupported file.
   */
  constructor(
    json: TokenizerJson,
    options?: {
      readonly config?: TokenizerConfig;
      readonly name?: string;
      readonly packed?: Packed;
      readonly splitter?: Splitter | undefined;
    },
  );
  constructor(...values: unknown[]) {
    super();
    const { json, config, name, packed, splitter } = readTokenizer(values);
    this.name = name;
    // the arguments may be proxies
    reading("PretrainedTokenizer", () => (packed ? checkConfig(config) : checkTokenizer(json, config)));
    const { encoder, spelling, added } = attempt(() => partsOf(json, config));
    if (packed) installPacked(encoder, packed);
    if (splitter)
      (encoder.model as { encode: (texts: string[]) => string[] }).encode = (texts) => texts.flatMap(splitter);
    this.encoder = encoder;
    this.spelling = spelling;
    for (const { id, content, special } of added) {
      this.added.set(id, spelling.bytesOfAdded(content));
      if (special) this.special.add(id);
    }
    const ids = packed ? added.map(({ id }) => id) : this.encoder.get_vocab(true).values();
    let size = packed?.size ?? 0;
    for (const id of ids) size = Math.max(size, id + 1);
    this.vocabularySize = size;
    this.endOfText = this.idOf(contentOf(config.eos_token));
    this.beginOfText = this.idOf(contentOf(config.bos_token));
    this.mask = this.idOf(contentOf(config.mask_token));
    this.padding = this.idOf(contentOf(config.pad_token));
    this.separator = this.endOfText ?? this.idOf(contentOf(config.sep_token)) ?? 0;
  }

  /** The tokens at the start and end of texts, for {@link ChatTemplate}. */
  get templateTokens(): TemplateTokens {
    const textOf = (token: number | null) => (token === null ? undefined : this.encoder.id_to_token(token));
    return { bosToken: textOf(this.beginOfText), eosToken: textOf(this.endOfText) };
  }

  /** Returns the token with a text such as `<|im_end|>`; null if there is none. */
  idOf(content: string | undefined): number | null {
    return content === undefined ? null : (this.encoder.token_to_id(content) ?? null);
  }

  /** @internal Returns the spelling of a token in the vocabulary; undefined for an unknown token. */
  textOf(token: number): string | undefined {
    return this.encoder.id_to_token(token);
  }

  encode(text: string, options?: EncodeOptions): number[];
  encode(...values: unknown[]): number[] {
    const { text, addSpecialTokens } = readEncode(values);
    const wellFormed = checkText("PretrainedTokenizer", text).toWellFormed();
    const { ids } = this.encoder.encode(wellFormed, { add_special_tokens: addSpecialTokens });
    if (ids.every((id) => id !== undefined)) return ids;
    const message = "expected a vocabulary that contains its unk_token";
    throw new ArgumentError("PretrainedTokenizer", "noUnknownToken", message);
  }

  /**
   * Encodes two texts as one input, with the special tokens and token types that the model's file defines.
   *
   * @example
   * tokenizer.encodePair("Who wrote it?", "Ada wrote it."); // { tokens: [101, …, 102, …, 102], tokenTypes: [0, …, 1] }
   *
   * @throws {ArgumentError} for fewer `maxTokens` than there are special tokens.
   */
  encodePair(text: string, pair: string, options?: EncodePairOptions): EncodedPair;
  encodePair(...values: unknown[]): EncodedPair {
    const { text, pair, ...options } = readPair(values);
    const { tokens, tokenTypes } = this.encodeInputs("PretrainedTokenizer.encodePair", text, { ...options, pair });
    return { tokens, tokenTypes };
  }

  /** @internal Encodes one text or two, of at most `maxTokens` tokens, and keeps where each token comes from. */
  encodeInputs(
    operation: string,
    text: string,
    { pair, addSpecialTokens = true, maxTokens = Infinity }: EncodePairOptions & { readonly pair?: string | undefined },
  ): EncodedInputs {
    const texts = pair === undefined ? [text] : [text, pair];
    const parts = texts.map((part) => this.encode(part, { addSpecialTokens: false }));
    const arrange = (counts: readonly number[]) =>
      arranged(this.encoder, counts, { addSpecialTokens, isPair: pair !== undefined });
    const room = maxTokens - arrange(parts.map(() => 0)).tokens.length;
    if (room < 0)
      throw new ArgumentError(
        operation,
        "tooFewTokens",
        `expected maxTokens to be at least ${maxTokens - room}, the number of special tokens, got ${maxTokens}`,
      );
    const counts = truncated(
      parts.map(({ length }) => length),
      room,
    );
    const { tokens, tokenTypes, origins } = arrange(counts);
    const ids = tokens.map((token, at) => {
      const origin = origins[at];
      return origin ? parts[origin[0]][origin[1]] : this.idOf(token)!;
    });
    return { tokens: ids, tokenTypes, origins, spans: (index) => this.spansIn(texts[index], parts[index]) };
  }

  private spansIn(text: string, tokens: readonly number[]): TextSpan[] {
    const { normalizer } = this.encoder;
    const { unk_token_id: unknown, config } = this.encoder.model as unknown as PackageModel;
    const pieces = tokens.map((token) => (token === unknown ? undefined : this.bytesOf(token)));
    const normalize = (part: string) => (normalizer ? normalizer.normalize(part) : part);
    return spansOf(text.toWellFormed(), pieces, { normalize, hasUnknownWords: config?.type === "WordPiece" });
  }

  /** Returns the text of tokens. Invalid UTF-8 becomes U+FFFD. @throws {ArgumentError} for an unknown token. */
  decode(tokens: Iterable<number>, options?: DecodeOptions): string;
  decode(...values: unknown[]): string {
    const { tokens, skipSpecialTokens, isStart = true } = readDecode(values);
    return decodeAll("PretrainedTokenizer", this.decoder({ skipSpecialTokens, isStart }), tokens);
  }

  bytesOf(token: number): Uint8Array {
    if (!Number.isInteger(token)) return this.lookUp(token);
    this.known[token] ??= this.lookUp(token);
    return this.known[token];
  }

  /** Whether a token is special: a marker rather than text. */
  isSpecial(token: number): boolean {
    return this.special.has(token);
  }

  /** @internal Returns all special tokens. */
  specialTokens(): number[] {
    return [...this.special];
  }

  decoder(options?: DecodeOptions): TextStream;
  decoder(...values: unknown[]): TextStream {
    const { skipSpecialTokens, isStart = false } = readDecoder(values);
    let dropsSpace = isStart && this.spelling.dropsFirstSpace;
    return new TextStream((token) => {
      const bytes = this.bytesOf(token);
      if (skipSpecialTokens && this.special.has(token)) return EMPTY;
      const drops = dropsSpace && bytes[0] === SPACE;
      if (bytes.length > 0) dropsSpace = false;
      return drops ? bytes.subarray(1) : bytes;
    });
  }

  private lookUp(token: number): Uint8Array {
    const added = this.added.get(token);
    if (added) return added;
    const content = Number.isInteger(token) ? this.encoder.id_to_token(token) : undefined;
    if (content !== undefined) return this.spelling.bytesOf(content);
    const expected = `a token from 0 to ${this.vocabularySize - 1}`;
    throw new ArgumentError("PretrainedTokenizer", "unknownToken", `expected ${expected}, got ${describeValue(token)}`);
  }
}

const EMPTY = new Uint8Array();

/** The internals of the package's models, in the pinned version. */
interface PackageModel {
  readonly unk_token_id?: number;
  readonly config?: { readonly type?: string };
}

/** A placeholder for a token of a text. No vocabulary has tokens that begin with U+0000 and U+FFFF. */
const MARK = "\u0000\uFFFF";

interface PostProcessed {
  readonly tokens: readonly string[];
  /** Tokens of the second text, if the post-processor does not join it to the first. */
  readonly tokens_pair?: readonly string[] | null;
  readonly token_type_ids?: number[];
}

/** Returns the special tokens around placeholders for tokens of texts, as the tokenizer's post-processor adds them. */
function arranged(
  { post_processor: processor }: Encoder,
  counts: readonly number[],
  { addSpecialTokens, isPair }: { readonly addSpecialTokens: boolean; readonly isPair: boolean },
) {
  const places = counts.map((count, which) => Array.from({ length: count }, (_, index) => `${MARK}${which} ${index}`));
  const [first, second] = [places[0], isPair ? places[1] : null];
  const plain = { tokens: [...first, ...(second ?? [])], token_type_ids: undefined };
  const processed = processor && addSpecialTokens ? processor.post_process(first, second, true) : plain;
  const { tokens: leading, tokens_pair: rest = [], token_type_ids: types } = processed as PostProcessed;
  const tokens = rest ? [...leading, ...rest] : leading;
  const origins = tokens.map((token): readonly [0 | 1, number] | null => {
    if (!token.startsWith(MARK)) return null;
    const [which, index] = token.slice(MARK.length).split(" ").map(Number);
    return [which as 0 | 1, index];
  });
  return { tokens, tokenTypes: typesOf(processor?.config, types, origins), origins };
}

interface ProcessorConfig {
  readonly type?: string;
  readonly processors?: readonly ProcessorConfig[];
}

/**
 * Returns token types as `tokenizers` does: by default the index of the text; always 0 with RoBERTa's post-processor.
 */
function typesOf(
  config: unknown,
  given: number[] | undefined,
  origins: readonly (readonly [text: 0 | 1, index: number] | null)[],
): number[] {
  const { type, processors = [] } = (config ?? {}) as ProcessorConfig;
  const isRoberta = [type, ...processors.map((processor) => processor.type)].includes("RobertaProcessing");
  if (isRoberta) return origins.map(() => 0);
  return given ?? origins.map((origin) => origin?.[0] ?? 0);
}

/** Returns how many tokens of each text remain, as with `longest_first` in Hugging Face's `tokenizers`. */
function truncated(counts: readonly number[], room: number): number[] {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= room) return [...counts];
  if (counts.length === 1) return [room];
  const [shorter, longer] = [Math.min(...counts), Math.max(...counts)];
  let [few, many] = [shorter, shorter > room ? shorter : Math.max(shorter, room - shorter)];
  if (few + many > room) [few, many] = [Math.floor(room / 2), Math.floor(room / 2) + (room % 2)];
  return counts[0] > counts[1] ? [many, few] : [Math.min(few, longer), many];
}

function partsOf(json: TokenizerJson, config: TokenizerConfig) {
  if (json.model?.type === "Unigram" && json.model["byte_fallback"]) throw noByteFallback();
  // The package is loaded on first use. Clean-up changes the text, for display only.
  const { Tokenizer } = require("@huggingface/tokenizers") as typeof import("@huggingface/tokenizers");
  const encoder = new Tokenizer(withExactSteps(json), { ...config, clean_up_tokenization_spaces: false });
  const added = Array.from(json.added_tokens ?? [], ({ id, content, special }) => ({ id, content, special }));
  return { encoder, spelling: spellingOf(json.decoder), added };
}

/** The error for byte fallback, which the package would encode as unknown tokens. */
const noByteFallback = (): ArgumentError =>
  new ArgumentError(
    "loadTokenizer",
    "unsupported",
    "expected a unigram model without byte_fallback, which is not supported",
  );

function attempt<T>(body: () => T): T {
  try {
    return body();
  } catch (cause) {
    if (cause instanceof ArgumentError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ArgumentError("loadTokenizer", "unsupported", `the tokenizer.json is not supported: ${reason}`, {
      cause,
    });
  }
}
