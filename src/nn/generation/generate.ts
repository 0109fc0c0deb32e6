import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { listOf } from "../../core/kinds.ts";
import { type Kind, operand, parameters } from "../../core/parameters.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { KeyValueCache } from "../cache.ts";
import { LanguageModel } from "../language_model.ts";
import { inEvaluation } from "../module.ts";
import { type GenerateOptions, type GenerateSettings, generateParameters, settingsOf } from "./options.ts";
import { chooseToken } from "./sampling.ts";

/** Token ids: a list, or an integer tensor [tokens] or [1, tokens]. */
export type Tokens = ArrayLike<number> | Tensor;

/**
 * Generates the tokens that follow a prompt, and yields each as it is computed. The model runs in evaluation mode
 * without gradients. Each token yields to the event loop. Weights may change between tokens if `useCache` is false.
 *
 * Keys and values of earlier tokens are cached, so that each token costs the computation of one token. When the context
 * is full, {@link Llama} drops the oldest token from the cache and goes on at the same cost. {@link GPT} has learned
 * positions, all of which move by one: each further token costs the computation of the last `contextLength` tokens. Of
 * a longer prompt the last `contextLength` tokens are used.
 *
 * @param tokens the prompt, at least one token
 * @param options how tokens are sampled, and when generation stops: see {@link GenerateOptions}
 *
 * @example
 * const options = { maxTokens: 20, temperature: 0.8, topK: 50, seed: 1 };
 * for await (const token of generate(model, [1, 2, 3], options)) console.log(token);
 *
 * @throws {ArgumentError} at once for an option out of range, an empty prompt, and a token that is not in the
 * vocabulary. While it runs: {@link ArgumentError} for logits of NaN, and the signal's reason.
 */
export function generate(
  model: LanguageModel,
  tokens: Tokens,
  options?: GenerateOptions,
): AsyncGenerator<number, void, undefined>;
export function generate(...values: unknown[]): AsyncGenerator<number, void, undefined> {
  const { model, tokens, ...options } = readCall(values);
  return run(model, checkTokens(tokens, model.vocabularySize), settingsOf("generate", options));
}

/** @internal */
export const aModel: Kind<LanguageModel> = {
  expected: "a language model",
  parse: (value) => (value instanceof LanguageModel ? value : undefined),
};

const tokenList = listOf<unknown>({ expected: "a token", parse: (value) => value }, "a list of tokens");
const prompt: Kind<ArrayLike<unknown> | Tensor> = {
  expected: "a list of tokens or a tensor",
  parse(value, operation, name) {
    if (!Tensor.isTensor(value)) return tokenList.parse(value, operation, name);
    value.checkAlive(operation);
    return value;
  },
};

const readCall = parameters("generate", { model: operand(aModel), tokens: operand(prompt), ...generateParameters });

async function* run(
  model: LanguageModel,
  prompt: readonly number[],
  { sampling, maxTokens, stopTokens, generator, signal, useCache }: GenerateSettings,
): AsyncGenerator<number, void, undefined> {
  const seen = new Set(prompt);
  using decoder = new Decoder(model, useCache);
  let next = prompt;
  for (let count = 0; count < maxTokens; count++) {
    await yieldToEventLoop();
    signal?.throwIfAborted();
    const logits = await decoder.logitsAfter(next);
    const token = chooseToken(logits, seen, sampling, generator);
    if (stopTokens.has(token)) return;
    seen.add(token);
    next = [token];
    yield token;
  }
}

/** Feeds tokens to a model, with or without a cache. */
class Decoder implements Disposable {
  private readonly model: LanguageModel;
  private cache: KeyValueCache | null;
  /** The last tokens, at most `contextLength`. */
  private tokens: readonly number[] = [];

  constructor(model: LanguageModel, useCache: boolean) {
    this.model = model;
    this.cache = useCache ? model.newCache() : null;
  }

  /** Feeds further tokens, and returns the logits of the next one. */
  async logitsAfter(tokens: readonly number[]): Promise<ArrayLike<number>> {
    const { model } = this;
    this.tokens = [...this.tokens, ...tokens].slice(-model.contextLength);
    using logits = tidy(() => noGrad(() => inEvaluation(model, () => this.compute(tokens))));
    return (await logits.data()) as ArrayLike<number>;
  }

  private compute(added: readonly number[]): Tensor {
    const { model, cache } = this;
    if (cache && (model.hasRelativePositions || cache.position + added.length <= model.contextLength))
      return model.forward(rowOf(added.slice(-model.contextLength)), { cache, lastOnly: true });
    this[Symbol.dispose](); // every position has moved: the cache is stale
    return model.forward(rowOf(this.tokens), { lastOnly: true });
  }

  [Symbol.dispose](): void {
    this.cache?.dispose();
    this.cache = null;
  }
}

const rowOf = (tokens: readonly number[]): Tensor => tensor([tokens as number[]], { dtype: "int32" });

function checkTokens(tokens: ArrayLike<unknown> | Tensor, vocabularySize: number): number[] {
  const list = Array.from<unknown, number>(tokens instanceof Tensor ? numbersOf(tokens) : tokens, toToken);
  if (list.length === 0)
    throw new ArgumentError("generate", "noTokens", "expected at least one token in the prompt, got none");
  const wrong = list.find((token) => !(Number.isInteger(token) && token >= 0 && token < vocabularySize));
  if (wrong === undefined) return list;
  throw new ArgumentError(
    "generate",
    "notInVocabulary",
    `expected tokens from 0 to ${vocabularySize - 1}, got ${wrong}; is this the model's tokenizer?`,
  );
}

const toToken = (value: unknown): number =>
  typeof value === "number" || typeof value === "bigint" ? Number(value) : Number.NaN;

function numbersOf(tokens: Tensor): ArrayLike<number | bigint> {
  if (tokens.rank === 1 || (tokens.rank === 2 && tokens.shape[0] === 1)) return tokens.dataSync();
  throw new ArgumentError(
    "generate",
    "notOneText",
    `expected tokens to have shape [tokens] or [1, tokens], got ${tokens.describe()}`,
  );
}
