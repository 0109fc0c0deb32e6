import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError, BackendError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { KeyValueCache } from "../cache/cache.ts";
import type { CacheFormat } from "../cache/store.ts";
import { inEvaluation } from "../layers/module.ts";
import type { LanguageModel } from "../models/language_model.ts";
import type { ImagePrompt, PlacedPrompt } from "../models/vision_language/images.ts";
import { aModel, promptOrImages, type ReadPrompt, readPrompt, type Tokens } from "../tasks/prompt.ts";
import { CompiledStep } from "./compiled_step.ts";
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
 * @param tokens the prompt, at least one token; or a prompt with images, which must fit the context together with the
 * generated tokens
 * @param options how tokens are sampled, and when generation stops: see {@link GenerateOptions}
 *
 * @example
 * const options = { maxTokens: 20, temperature: 0.8, topK: 50, seed: 1 };
 * for await (const token of generate(model, [1, 2, 3], options)) console.log(token);
 *
 * @throws {ArgumentError} at once for an option out of range, an empty prompt, a token that is not in the vocabulary,
 * and images that do not match the model or the tokens. During generation: {@link ArgumentError} for logits of NaN, and
 * the signal's reason.
 */
export function generate(
  model: LanguageModel,
  tokens: Tokens | ImagePrompt,
  options?: GenerateOptions,
): AsyncGenerator<number, void, undefined>;
export function generate(...values: unknown[]): AsyncGenerator<number, void, undefined> {
  const { model, tokens, ...options } = readCall(values);
  const settings = settingsOf("generate", options);
  const prompt = readPrompt("generate", tokens, model);
  if (!settings.draft) return run(model, prompt, withRoom(model, prompt, settings));
  checkDraft(model, settings.draft, prompt, settings);
  return generateDrafted(model, settings.draft, prompt.tokens, settings);
}

/** An image cannot be cut from a full context: generation then ends. @throws {ArgumentError} `promptTooLong` */
function withRoom({ contextLength }: LanguageModel, prompt: ReadPrompt, settings: GenerateSettings): GenerateSettings {
  if (!prompt.placed) return settings;
  const room = contextLength - prompt.tokens.length;
  if (room >= 0) return { ...settings, maxTokens: Math.min(settings.maxTokens, room) };
  const message = `expected at most ${contextLength} tokens with images, got ${prompt.tokens.length}; use smaller ones`;
  throw new ArgumentError("generate", "promptTooLong", message);
}

function checkDraft(
  { vocabularySize, contextLength, hasStates }: LanguageModel,
  draft: LanguageModel,
  { tokens: { length }, placed }: ReadPrompt,
  { constraint, useCache }: GenerateSettings,
): void {
  const fail = (message: string) => new ArgumentError("generate", "unfitDraft", message);
  if (draft.vocabularySize !== vocabularySize)
    throw fail(`expected a draft with the model's vocabulary of ${vocabularySize} tokens, got ${draft.vocabularySize}`);
  if (hasStates || draft.hasStates)
    throw fail(
      "draft is not supported for models with recurrent layers, whose states can't go back; remove the option",
    );
  if (placed) throw fail("draft is not supported for a prompt with images; remove the option");
  if (constraint || !useCache) throw fail("draft requires useCache: true and no constraint; remove one of the options");
  const most = Math.min(contextLength, draft.contextLength);
  if (length > most) throw fail(`expected a prompt of at most ${most} tokens, the smaller context, got ${length}`);
}

const readCall = parameters("generate", {
  model: operand(aModel),
  tokens: operand(promptOrImages),
  ...generateParameters,
});

async function* run(
  model: LanguageModel,
  { tokens, placed }: ReadPrompt,
  { signal, useCache, cache, compile, ...settings }: GenerateSettings,
): AsyncGenerator<number, void, undefined> {
  using sequence = new Sequence(tokens, settings);
  const held = useCache ? model.newCache({ format: cache }) : null;
  const step = held && compile ? CompiledStep.of(model, held, settings.maxTokens) : null;
  using decoder = new Decoder(model, held, step, placed, cache);
  let next: readonly number[] = tokens;
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
    private step: CompiledStep | null,
    private readonly placed: PlacedPrompt | undefined,
    private readonly format: CacheFormat | undefined,
  ) {}

  /** Feeds tokens to the model, and returns the logits of the next one. */
  async logitsAfter(tokens: readonly number[]): Promise<ArrayLike<number>> {
    const { model } = this;
    this.tokens = [...this.tokens, ...tokens].slice(-model.contextLength);
    try {
      return await this.read(tokens);
    } catch (error) {
      if (!(this.cache && error instanceof BackendError && error.code === "lost")) throw error;
      this.dropCache(); // the device failed during a compiled step
      this.cache = model.newCache({ format: this.format });
      return this.read(this.tokens);
    }
  }

  private async read(tokens: readonly number[]): Promise<ArrayLike<number>> {
    using logits = tidy(() => noGrad(() => inEvaluation(this.model, () => this.compute(tokens))));
    return (await logits.data()) as ArrayLike<number>;
  }

  private compute(added: readonly number[]): Tensor {
    const { model, cache, step, placed: prompt } = this;
    if (prompt && (!cache || cache.position === 0)) {
      const placed = prompt.part(0, this.tokens.length);
      return model.forward(rowOf(this.tokens), { cache: cache ?? undefined, placed, lastOnly: true });
    }
    if (cache && (model.hasRelativePositions || cache.position + added.length <= model.contextLength)) {
      const tokens = rowOf(added.slice(-model.contextLength));
      if (step && added.length === 1) return step.logitsAfter(tokens);
      return model.forward(tokens, { cache, lastOnly: true });
    }
    this.dropCache(); // every position has shifted, so the cached keys are stale
    return model.forward(rowOf(this.tokens), { lastOnly: true });
  }

  private dropCache(): void {
    this.step?.[Symbol.dispose]();
    this.step = null;
    this.cache?.dispose();
    this.cache = null;
  }

  [Symbol.dispose](): void {
    this.dropCache();
    this.placed?.[Symbol.dispose]();
  }
}

const rowOf = (tokens: readonly number[]): Tensor => tensor([tokens as number[]], { dtype: "int32" });
