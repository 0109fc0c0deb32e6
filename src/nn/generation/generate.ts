import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { KeyValueCache } from "../cache.ts";
import type { LanguageModel } from "../language_model.ts";
import { inEvaluation } from "../module.ts";
import { type GenerateOptions, type GenerateSettings, settingsOf } from "./options.ts";
import { chooseToken } from "./sampling.ts";

/** The numbers of tokens: a list, or integers [tokens] or [1, tokens]. */
export type Tokens = ArrayLike<number> | Tensor;

/**
 * The tokens that follow others, one by one as they are computed. The model runs as `eval()` sets it, and nothing is recorded; the event
 * loop turns between tokens. Weights may change meanwhile where `useCache` is false.
 *
 * Keys and values of earlier tokens are kept, so that each token costs the computation of one. What happens where the context is full
 * depends on the model. {@link Llama} forgets the oldest token's, and goes on as before. {@link GPT} has learned positions, which all move by one: each further token
 * costs the computation of its last `contextLength` tokens. A prompt that is longer counts with its last `contextLength` tokens.
 *
 * @param tokens at least one
 * @param options how the next token is chosen, and when it ends: see {@link GenerateOptions}
 *
 * @example
 * for await (const token of generate(model, [1, 2, 3], { maxTokens: 20, temperature: 0.8, topK: 50, seed: 1 })) console.log(token);
 *
 * @throws {ArgumentError} for an option out of its range, no tokens, and a token that is not in the vocabulary: at once. While it runs:
 * {@link ArgumentError} for logits of NaN, and the signal's reason.
 */
export function generate(
  model: LanguageModel,
  tokens: Tokens,
  options: GenerateOptions = {},
): AsyncGenerator<number, void, undefined> {
  const settings = settingsOf("generate", options);
  return run(model, checkTokens(tokens, model.vocabularySize), settings);
}

async function* run(
  model: LanguageModel,
  prompt: readonly number[],
  { sampling, maxTokens, stopTokens, generator, signal, useCache }: GenerateSettings,
): AsyncGenerator<number, void, undefined> {
  const come = new Set(prompt);
  using reading = new Reading(model, useCache);
  let next = prompt;
  for (let count = 0; count < maxTokens; count++) {
    await turnOfEventLoop();
    signal?.throwIfAborted();
    const logits = await reading.logitsAfter(next);
    const token = chooseToken(logits, come, sampling, generator);
    if (stopTokens.has(token)) return;
    come.add(token);
    next = [token];
    yield token;
  }
}

const turnOfEventLoop = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** A text that a model reads token by token. */
class Reading implements Disposable {
  private readonly model: LanguageModel;
  private cache: KeyValueCache | null;
  /** The last ones, as many as the model sees. */
  private tokens: readonly number[] = [];

  constructor(model: LanguageModel, useCache: boolean) {
    this.model = model;
    this.cache = useCache ? model.newCache() : null;
  }

  /** Reads on, and gives the logits of what comes next. */
  async logitsAfter(tokens: readonly number[]): Promise<ArrayLike<number>> {
    const { model } = this;
    this.tokens = [...this.tokens, ...tokens].slice(-model.contextLength);
    using logits = tidy(() => noGrad(() => inEvaluation(model, () => this.compute(tokens))));
    return (await logits.data()) as ArrayLike<number>;
  }

  private compute(added: readonly number[]): Tensor {
    const { model, cache } = this;
    if (cache && (model.slides || cache.position + added.length <= model.contextLength))
      return model.forward(rowOf(added.slice(-model.contextLength)), { cache, lastOnly: true });
    this[Symbol.dispose](); // every position has moved, or there is no cache
    return model.forward(rowOf(this.tokens), { lastOnly: true });
  }

  [Symbol.dispose](): void {
    this.cache?.dispose();
    this.cache = null;
  }
}

const rowOf = (tokens: readonly number[]): Tensor => tensor([tokens as number[]], { dtype: "int32" });

function checkTokens(tokens: Tokens, vocabularySize: number): number[] {
  const list = Array.from(tokens instanceof Tensor ? numbersOf(tokens) : tokens, Number);
  if (list.length === 0)
    throw new ArgumentError("generate", "noTokens", "at least one token is wanted to go on from, none came");
  const wrong = list.find((token) => !(Number.isInteger(token) && token >= 0 && token < vocabularySize));
  if (wrong === undefined) return list;
  throw new ArgumentError(
    "generate",
    "notInVocabulary",
    `token ${wrong} came, the model's vocabulary is 0 to ${vocabularySize - 1}; is the tokenizer the model's own?`,
  );
}

function numbersOf(tokens: Tensor): ArrayLike<number | bigint> {
  if (tokens.rank === 1 || (tokens.rank === 2 && tokens.shape[0] === 1)) return tokens.dataSync();
  throw new ArgumentError("generate", "notOneText", `[tokens] or [1, tokens] is wanted, ${tokens.describe()} came`);
}
