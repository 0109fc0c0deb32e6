import type ranksOfBytes from "gpt-tokenizer/bpeRanks/r50k_base";
import type encoding from "gpt-tokenizer/encoding/r50k_base";
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { expectNothing } from "../core/parameters.ts";
import {
  checkText,
  decodeAll,
  PrintedTokenizer,
  type SpecialTokens,
  TextStream,
  type Tokenizer,
  type Tokens,
} from "./tokenizer.ts";

interface Loaded {
  readonly encoding: typeof encoding;
  /** The bytes of each token: as a string if they are valid UTF-8. */
  readonly bytes: typeof ranksOfBytes;
}

let loaded: Loaded | undefined;

/** Loaded on first use: the package takes 70 ms and some megabytes. */
function load(): Loaded {
  loaded ??= {
    encoding: (require("gpt-tokenizer/encoding/r50k_base") as { default: typeof encoding }).default,
    bytes: (require("gpt-tokenizer/bpeRanks/r50k_base") as { default: typeof ranksOfBytes }).default,
  };
  return loaded;
}

const VOCABULARY = 50_257;
const END_OF_TEXT = 50_256;

/** Special tokens in a text are encoded as plain text. */
const asText = { disallowedSpecial: new Set<string>() };

/**
 * 1024 characters that GPT-2's pattern matches as one word. Such words are split, because the encoding time is
 * quadratic in the length of a word: a file of one long line of `=` would take hours. Words of natural languages are
 * much shorter.
 */
const endlessWord = /(\p{L}{1024}|\p{N}{1024}|[^\s\p{L}\p{N}]{1024}|\s{1024})/u;

/**
 * GPT-2's byte pair encoding: 50,256 tokens for text, and an end-of-text token. The tables come from the npm package
 * `gpt-tokenizer`, and are loaded when the first text is encoded or decoded. `<|endoftext|>` in a text is encoded as
 * plain text.
 *
 * @example
 * const tokenizer = new Gpt2Tokenizer();
 * tokenizer.encode("Hello, world!"); // [15496, 11, 995, 0]
 */
export class Gpt2Tokenizer extends PrintedTokenizer implements Tokenizer {
  readonly name = "gpt2";
  readonly vocabularySize: number = VOCABULARY;
  readonly endOfText: number = END_OF_TEXT;
  readonly separator: number = END_OF_TEXT;
  private readonly known: (Uint8Array | undefined)[] = [];
  private readonly encoder = new TextEncoder();

  constructor();
  constructor(...values: unknown[]) {
    super();
    expectNothing("Gpt2Tokenizer", values);
  }

  encode(text: string, _options?: SpecialTokens): Tokens {
    checkText("Gpt2Tokenizer", text);
    const { encoding } = load();
    const words = text.toWellFormed().split(endlessWord);
    return words.length === 1
      ? encoding.encode(words[0], asText)
      : words.flatMap((word) => encoding.encode(word, asText));
  }

  decode(tokens: Iterable<number>): string {
    return decodeAll("Gpt2Tokenizer", this.decoder(), tokens);
  }

  bytesOf(token: number): Uint8Array {
    if (!Number.isInteger(token)) return this.lookUp(token);
    this.known[token] ??= this.lookUp(token);
    return this.known[token];
  }

  decoder(_options?: SpecialTokens): TextStream {
    return new TextStream((token) => this.bytesOf(token));
  }

  private lookUp(token: number): Uint8Array {
    if (token === END_OF_TEXT) return this.encoder.encode("<|endoftext|>");
    const content = typeof token === "number" ? load().bytes[token] : undefined;
    if (content !== undefined)
      return typeof content === "string" ? this.encoder.encode(content) : Uint8Array.from(content);
    throw new ArgumentError(
      "Gpt2Tokenizer",
      "unknownToken",
      `expected a token from 0 to ${VOCABULARY - 1}, got ${describeValue(token)}`,
    );
  }
}
