/** Encodes texts with a limit on their length. */

/** The method of a tokenizer that {@link encodeAtMost} uses. */
interface Encoder<Options> {
  encode(text: string, options?: Options): Iterable<number>;
}

/** The length of the first try. Most texts have fewer than five characters per token. */
const CHARACTERS_PER_TOKEN = 8;
/** Splitting a token at the end of a prefix may increase the number of tokens. */
const SPARE = 16;

/**
 * Returns the tokens of a text, or undefined if there are more than the limit. It encodes prefixes of doubling length,
 * so a text that is far too long is not encoded completely.
 */
export function encodeAtMost<Options>(
  tokenizer: Encoder<Options>,
  text: string,
  most: number,
  options?: Options,
): number[] | undefined {
  for (let length = CHARACTERS_PER_TOKEN * (most + SPARE); length < text.length; length *= 2) {
    const tokens = [...tokenizer.encode(text.slice(0, length), options)];
    if (tokens.length > most + SPARE) return undefined;
  }
  return [...tokenizer.encode(text, options)];
}
