/** Checks the arguments that generation starts from: a model, and the tokens of a prompt. */
import { ArgumentError } from "../../core/errors.ts";
import { listOf } from "../../core/kinds.ts";
import type { Kind } from "../../core/parameters.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { LanguageModel } from "../models/language_model.ts";

/** Token ids: a list, or an integer tensor [tokens] or [1, tokens]. */
export type Tokens = ArrayLike<number> | Tensor;

/** @internal */
export const aModel: Kind<LanguageModel> = {
  expected: "a language model",
  parse: (value) => (value instanceof LanguageModel ? value : undefined),
};

const tokenList = listOf<unknown>({ expected: "a token", parse: (value) => value }, "a list of tokens");
/** @internal */
export const prompt: Kind<ArrayLike<unknown> | Tensor> = {
  expected: "a list of tokens or a tensor",
  parse(value, operation, name) {
    if (!Tensor.isTensor(value)) return tokenList.parse(value, operation, name);
    value.checkAlive(operation);
    return value;
  },
};

/**
 * @internal Returns the tokens of a prompt. @throws {ArgumentError} for an empty prompt, and tokens outside the
 * vocabulary.
 */
export function checkTokens(operation: string, tokens: ArrayLike<unknown> | Tensor, vocabularySize: number): number[] {
  const list = Array.from<unknown, number>(tokens instanceof Tensor ? numbersOf(operation, tokens) : tokens, toToken);
  if (list.length === 0)
    throw new ArgumentError(operation, "noTokens", "expected at least one token in the prompt, got none");
  const wrong = list.find((token) => !(Number.isInteger(token) && token >= 0 && token < vocabularySize));
  if (wrong === undefined) return list;
  throw new ArgumentError(
    operation,
    "notInVocabulary",
    `expected tokens from 0 to ${vocabularySize - 1}, got ${wrong}; is this the model's tokenizer?`,
  );
}

const toToken = (value: unknown): number =>
  typeof value === "number" || typeof value === "bigint" ? Number(value) : Number.NaN;

function numbersOf(operation: string, tokens: Tensor): ArrayLike<number | bigint> {
  if (tokens.rank === 1 || (tokens.rank === 2 && tokens.shape[0] === 1)) return tokens.dataSync();
  throw new ArgumentError(
    operation,
    "notOneText",
    `expected tokens to have shape [tokens] or [1, tokens], got ${tokens.describe()}`,
  );
}
