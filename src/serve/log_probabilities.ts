/** Probabilities of tokens in the forms of the two endpoints. */
import type { GeneratedToken } from "../nn/generation/sequence.ts";
import type { Part } from "./choice.ts";
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

export function completionChances(tokenizer: ServedTokenizer, parts: readonly Part[]): object {
  const tokens = parts.flatMap((part) => part.tokens);
  const texts = tokens.map(({ token }) => textOf(tokenizer, token));
  let offset = 0;
  return {
    tokens: texts,
    token_logprobs: tokens.map(({ logProbability }) => finite(logProbability)),
    top_logprobs: tokens.map(({ likeliest = [] }) =>
      Object.fromEntries(likeliest.map((own) => [textOf(tokenizer, own.token), finite(own.logProbability)])),
    ),
    text_offset: texts.map(({ length }) => {
      offset += length;
      return offset - length;
    }),
  };
}
