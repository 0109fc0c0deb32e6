import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { KeyValueCache } from "../cache/cache.ts";
import { inEvaluation } from "../layers/module.ts";
import type { LanguageModel } from "../models/language_model.ts";
import { aModel, checkTokens, prompt, type Tokens } from "../tasks/prompt.ts";
import { type GenerateOptions, type GenerateSettings, generateParameters, settingsOf } from "./options.ts";
import { Sequence } from "./sequence.ts";
import { generateDrafted } from "./speculative.ts";

/**
 * Generates the tokens that follow a prompt, and yields each one as it is computed. The model runs in evaluation mode
 * without gradients. The event loop runs between tokens. With `useCache: false`, weights may change between tokens.
 *
 * Keys and values of earlier tokens are cached, so each token costs one token's computation. When the context is full,
 * {@link Llama} drops the oldest token from the cache and continues at the same cost. {@link GPT} has learned
 * positions, which all shift by one: each further token recomputes the last `contextLength` tokens. A prompt longer
 * than the context is cut to its last `contextLength` tokens.
 *
 * @param tokens the prompt, at least one token
 * @param options how tokens are sampled, and when generation stops: see {@link GenerateOptions}
 *
 * @example
 * const options = { maxTokens: 20, temperature: 0.8, topK: 50, seed: 1 };
 * for await (const token of generate(model, [1, 2, 3], options)) console.log(token);
 *
 * @throws {ArgumentError} at once for an option out of range, an empty prompt, and a token that is not in the
 * vocabulary. During generation: {@link ArgumentError} for logits of NaN, and the signal's reason.
 */
export function generate(
  model: LanguageModel,
  tokens: Tokens,
  options?: GenerateOptions,
): AsyncGenerator<number, void, undefined>;
export function generate(...values: unknown[]): AsyncGenerator<number, void, undefined> {
  const { model, tokens, ...options } = readCall(values);
  const prompt = checkTokens("generate", tokens, model.vocabularySize);
  const settings = settingsOf("generate", options);
  if (!settings.draft) return run(model, prompt, settings);
  checkDraft(model, settings.draft, prompt.length, settings);
  return generateDrafted(model, settings.draft, prompt, settings);
}

function checkDraft(
  { vocabularySize, contextLength }: LanguageModel,
  draft: LanguageModel,
  length: number,
  { constraint, useCache }: GenerateSettings,
): void {
  const fail = (message: string) => new ArgumentError("generate", "unfitDraft", message);
  if (draft.vocabularySize !== vocabularySize)
    throw fail(`expected a draft with the model's vocabulary of ${vocabularySize} tokens, got ${draft.vocabularySize}`);
  if (constraint || !useCache) throw fail("draft requires useCache: true and no constraint; remove one of the options");
  const most = Math.min(contextLength, draft.contextLength);
  if (length > most) throw fail(`expected a prompt of at most ${most} tokens, the smaller context, got ${length}`);
}

const readCall = parameters("generate", { model: operand(aModel), tokens: operand(prompt), ...generateParameters });

async function* run(
  model: LanguageModel,
  prompt: readonly number[],
  { signal, useCache, cache, ...settings }: GenerateSettings,
): AsyncGenerator<number, void, undefined> {
  using sequence = new Sequence(prompt, settings);
  using decoder = new Decoder(model, useCache ? model.newCache({ format: cache }) : null);
  let next = prompt;
  while (!sequence.isFull) {
    await yieldToEventLoop();
    signal?.throwIfAborted();
    const chosen = await sequence.next(await decoder.logitsAfter(next));
    if (!chosen) return;
    next = [chosen.token];
    yield chosen.token;
  }
}

/** Feeds tokens to a model, with or without a cache. */
class Decoder implements Disposable {
  /** The last tokens, at most `contextLength`. */
  private tokens: readonly number[] = [];

  constructor(
    private readonly model: LanguageModel,
    private cache: KeyValueCache | null,
  ) {}

  /** Feeds tokens to the model, and returns the logits of the next one. */
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
    this[Symbol.dispose](); // every position has shifted, so the cached keys are stale
    return model.forward(rowOf(this.tokens), { lastOnly: true });
  }

  [Symbol.dispose](): void {
    this.cache?.dispose();
    this.cache = null;
  }
}

const rowOf = (tokens: readonly number[]): Tensor => tensor([tokens as number[]], { dtype: "int32" });
