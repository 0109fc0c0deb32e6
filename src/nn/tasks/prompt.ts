/** Checks the arguments that generation starts from: a model, and the tokens of a prompt. */
import { ArgumentError } from "../../core/errors.ts";
import { listOf } from "../../core/kinds.ts";
import type { Kind } from "../../core/parameters.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { LanguageModel } from "../models/language_model.ts";
import { aImage, type ImagePrompt, type PlacedPrompt } from "../models/vision_language/images.ts";

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

/** @internal Tokens, or a prompt with images. */
export const promptOrImages: Kind<ArrayLike<unknown> | Tensor | ImagePrompt> = {
  expected: "a list of tokens, a tensor, or a prompt with tokens and images",
  parse: (value, operation, name) => (hasImages(value) ? value : prompt.parse(value, operation, name)),
};

const imageList = listOf(aImage, "a list of images that a processor returned");

function hasImages(value: unknown): value is ImagePrompt {
  if (typeof value !== "object" || value === null || Tensor.isTensor(value) || !("images" in value)) return false;
  return Array.isArray((value as Partial<ImagePrompt>).tokens);
}

/** @internal A prompt in the form that generation uses. */
export interface ReadPrompt {
  readonly tokens: number[];
  /** The images of the prompt and their places, if it has any. Disposing of them frees their features. */
  readonly placed: PlacedPrompt | undefined;
}

/**
 * @internal Reads a prompt. @throws {ArgumentError} as {@link checkTokens}, and for images that the model can't read.
 */
export function readPrompt(
  operation: string,
  given: ArrayLike<unknown> | Tensor | ImagePrompt,
  model: LanguageModel,
): ReadPrompt {
  if (!hasImages(given)) return { tokens: checkTokens(operation, given, model.vocabularySize), placed: undefined };
  const tokens = checkTokens(operation, given.tokens, model.vocabularySize);
  const images = imageList.parse(given.images, operation, "images");
  if (!images) throw new ArgumentError(operation, "wrongType", `expected images to be ${imageList.expected}`);
  return { tokens, placed: images.length > 0 ? model.placedPrompt(operation, { tokens, images }) : undefined };
}

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
