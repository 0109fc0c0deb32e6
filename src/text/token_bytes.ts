/** Converts tokens to bytes according to a tokenizer's decoder. */
import { ArgumentError } from "../core/errors.ts";
import { bytesOfText } from "../data/bpe_words.ts";
import type { DecoderConfig } from "./tokenizer_file.ts";

/** The conversion of tokens to bytes. */
export interface Spelling {
  /** Returns the bytes of a token of the vocabulary. */
  readonly bytesOf: (token: string) => Uint8Array;
  /** Returns the bytes of an added token. */
  readonly bytesOfAdded: (content: string) => Uint8Array;
  /** Whether decoding removes a space at the start of a text, which the encoding inserted. */
  readonly dropsFirstSpace: boolean;
}

const encoder = new TextEncoder();
const utf8 = (content: string): Uint8Array => encoder.encode(content);
const BYTE = /^<0x([0-9A-Fa-f]{2})>$/;

/** GPT-2's spelling: each character of a token represents a byte. */
const byteLevel: Spelling = {
  bytesOf: (token) => bytesOfText(token) ?? encoder.encode(token),
  bytesOfAdded: utf8,
  dropsFirstSpace: false,
};

const replaced = (token: string, from: string, to: string) => encoder.encode(token.replaceAll(from, to));

/** SentencePiece's spelling: `▁` is a space, and `<0x0A>` a byte. */
function pieces(space: string, hasBytes: boolean, dropsFirstSpace: boolean): Spelling {
  const bytesOf = (token: string) => {
    const byte = hasBytes ? BYTE.exec(token)?.[1] : undefined;
    return byte === undefined ? replaced(token, space, " ") : Uint8Array.of(Number.parseInt(byte, 16));
  };
  return { bytesOf, bytesOfAdded: bytesOf, dropsFirstSpace }; // Gemma's runs of spaces are added tokens
}

/** BERT's spelling: a token without `##` starts a word. */
const words = (prefix: string): Spelling => ({
  bytesOf: (token) => encoder.encode(token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`),
  bytesOfAdded: (content) => encoder.encode(` ${content}`),
  dropsFirstSpace: true,
});

/** Returns the spelling of a decoder. @throws {ArgumentError} for an unknown decoder. */
export function spellingOf(decoder: DecoderConfig | null | undefined): Spelling {
  const steps = stepsOf(decoder);
  const find = (type: string) => steps.find((step) => step.type === type);
  const unknown = steps.find(({ type }) => !KNOWN.has(type));
  if (unknown)
    throw new ArgumentError(
      "loadTokenizer",
      "unknownDecoder",
      `expected a decoder that is one of ${[...KNOWN].join(", ")}, got ${unknown.type}`,
    );
  if (find("ByteLevel")) return byteLevel;
  const wordPiece = find("WordPiece");
  if (wordPiece) return words(wordPiece.prefix ?? "##");
  const metaspace = find("Metaspace");
  if (metaspace)
    return pieces(
      metaspace.replacement ?? "▁",
      find("ByteFallback") !== undefined,
      metaspace.prepend_scheme !== "never",
    );
  const space = find("Replace")?.pattern?.String ?? "▁";
  return pieces(space, find("ByteFallback") !== undefined, (find("Strip")?.start ?? 0) > 0);
}

const KNOWN = new Set(["ByteLevel", "WordPiece", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"]);

const stepsOf = (decoder: DecoderConfig | null | undefined): readonly DecoderConfig[] =>
  decoder?.type === "Sequence" ? (decoder.decoders ?? []) : decoder ? [decoder] : [];
