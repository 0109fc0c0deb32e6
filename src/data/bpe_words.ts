/** How byte pair encodings cut text into words, and write bytes as characters. Both are GPT-2's. */

/**
 * GPT-2's pattern of words, with Unicode's white space by name: what `\s` matches differs between the regular
 * expressions of JavaScript, Rust and Python.
 */
export const WORD_PATTERN: string =
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\p{White_Space}\\p{L}\\p{N}]+" +
  "|\\p{White_Space}+(?!\\P{White_Space})|\\p{White_Space}+";

const pattern = new RegExp(WORD_PATTERN, "gu");

/** The words of a text, in order: their concatenation is the text. */
export const wordsOf = (text: string): string[] => text.match(pattern) ?? [];

/**
 * The character that stands for each byte in files: itself where it is visible, and for the 68 others U+0100 and
 * following (GPT-2's `bytes_to_unicode`).
 */
export const byteCharacters: readonly string[] = (() => {
  const isVisible = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let hidden = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isVisible(byte) ? byte : hidden++));
})();

const bytesOfCharacters = new Map(byteCharacters.map((character, byte) => [character, byte]));

/** The bytes that characters of {@link byteCharacters} stand for; undefined where one is none of them. */
export function bytesOfText(text: string): Uint8Array | undefined {
  const bytes = Array.from(text, (character) => bytesOfCharacters.get(character));
  return bytes.includes(undefined) ? undefined : Uint8Array.from(bytes as number[]);
}

/** The bytes in the order of their characters, in which a vocabulary lists them. */
export const sortedBytes: readonly number[] = Array.from({ length: 256 }, (_, byte) => byte).sort(
  (a, b) => byteCharacters[a]!.codePointAt(0)! - byteCharacters[b]!.codePointAt(0)!,
);

/** The text that ends a document. It is the first token of a vocabulary that is trained. */
export const END_OF_TEXT = "<|endoftext|>";
