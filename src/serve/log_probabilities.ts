/** Formats the probabilities of tokens for the two endpoints. */
import type { GeneratedToken } from "../nn/generation/sequence.ts";
import type { ServedTokenizer } from "./served_model.ts";

/** JSON has no −∞. */
const LEAST = -9999;
const finite = (value: number | undefined): number => Math.max(LEAST, value ?? LEAST);

const decoder = new TextDecoder();
const textOf = (tokenizer: ServedTokenizer, token: number): string => decoder.decode(tokenizer.bytesOf(token));

export function chatChances(tokenizer: ServedTokenizer, tokens: readonly GeneratedToken[]) {
  const entry = (token: number, logProbability: number | undefined) => ({
    token: textOf(tokenizer, token),
    logprob: finite(logProbability),
    bytes: [...tokenizer.bytesOf(token)],
  });
  return {
    content: tokens.map(({ token, logProbability, likeliest = [] }) => ({
      ...entry(token, logProbability),
      top_logprobs: likeliest.map((other) => entry(other.token, other.logProbability)),
    })),
    refusal: null,
  };
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Returns a token's text as a key. Incomplete characters are written as in OpenAI's API: `bytes:\\xe2\\x82`. */
function keyOf(tokenizer: ServedTokenizer, token: number): string {
  const bytes = tokenizer.bytesOf(token);
  try {
    return strict.decode(bytes);
  } catch {
    return `bytes:${Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}`;
  }
}

/**
 * Formats the probabilities of a completion. @param start the offset of the first token, in characters of the whole
 * text
 */
export function completionChances(tokenizer: ServedTokenizer, tokens: readonly GeneratedToken[], start: number) {
  const texts = tokens.map(({ token }) => textOf(tokenizer, token));
  let offset = start;
  return {
    tokens: texts,
    // The first token of a prompt has no probability, since nothing precedes it.
    token_logprobs: tokens.map(({ logProbability }) => (logProbability === undefined ? null : finite(logProbability))),
    top_logprobs: tokens
      .map(
        ({ likeliest }) =>
          likeliest &&
          Object.fromEntries(
            likeliest.map((choice) => [keyOf(tokenizer, choice.token), finite(choice.logProbability)]),
          ),
      )
      .map((chance) => chance ?? null),
    text_offset: texts.map(({ length }) => {
      offset += length;
      return offset - length;
    }),
  };
}
