/** Encodes texts that may be far too long. */

/** What {@link encodeAtMost} needs of a tokenizer. */
interface Encoder<Options> {
  encode(text: string, options?: Options): Iterable<number>;
}

/** Of a text that is read first. Most are of fewer than five characters a token. */
const CHARACTERS_PER_TOKEN = 8;
/** A cut may lie within a token, of which there are then more. */
const SPARE = 16;

/**
 * The tokens of a text; undefined if its beginning has more than so many already. Each further try reads twice as much
 * of it, so that what is far too long is not read whole.
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
