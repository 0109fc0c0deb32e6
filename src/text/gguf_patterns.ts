/**
 * The patterns by which byte-level BPE splits text into words, under llama.cpp's names (`tokenizer.ggml.pre`). They are
 * the patterns of the models' `tokenizer.json`.
 */
import { ArgumentError } from "../core/errors.ts";

const GPT2 = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
/** Llama 3's pattern with a given quantifier of digits per word. */
const llama3 = (digits: string): string =>
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}${digits}| ?[^\s\p{L}\p{N}]+[\r\n]*` +
  String.raw`|\s*[\r\n]+|\s+(?!\S)|\s+`;

/** Words that start with capitals or consist of capitals, with an optional end such as contractions. */
const cased = (end: string, digits: string): string =>
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+${end}` +
  String.raw`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*${end}` +
  String.raw`|\p{N}${digits}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`;

const split = (pattern: string): object => ({
  type: "Split",
  pattern: { Regex: pattern },
  behavior: "Isolated",
  invert: false,
});
const digits = { type: "Digits", individual_digits: true };

const gpt2 = [split(GPT2)];
const digitsAlone = [digits, split(GPT2)];
const three = [split(llama3("{1,3}"))];
const one = [split(llama3(""))];

const patterns: Readonly<Record<string, readonly object[]>> = {
  "gpt-2": gpt2,
  gpt2: gpt2,
  olmo: gpt2,
  "phi-2": gpt2,
  mpt: gpt2,
  "llama-bpe": three,
  llama3: three,
  "llama-v3": three,
  "smaug-bpe": three,
  dbrx: three,
  qwen2: one,
  "deepseek-r1-qwen": one,
  tekken: [split(cased("", ""))],
  "gpt-4o": [split(cased("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "{1,3}"))],
  stablelm2: one,
  smollm: digitsAlone,
  starcoder: digitsAlone,
  refact: digitsAlone,
  "command-r": digitsAlone,
  codeshell: digitsAlone,
};

/** Returns the splitting steps of a name. @throws {ArgumentError} for an unknown name. */
export function patternsOf(name: string): readonly object[] {
  const pattern = Object.hasOwn(patterns, name) ? patterns[name] : undefined;
  if (pattern) return pattern;
  throw new ArgumentError(
    "loadTokenizer",
    "unsupportedTokenizer",
    `expected tokenizer.ggml.pre to be one of ${Object.keys(patterns).join(", ")}, got ${name}; to use another ` +
      "tokenizer, put a tokenizer.json next to the file",
  );
}
