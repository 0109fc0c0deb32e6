/** A request in progress: its texts and its end. */
import type { Batcher } from "../nn/generation/batcher.ts";
import type { BatchOptions } from "../nn/generation/options.ts";
import type { ImageInputs } from "../nn/models/vision_language/images.ts";
import type { TokenConstraint } from "../text/constraint/token_constraint.ts";
import { ApiError, busy } from "./api_error.ts";
import { Choice } from "./choice.ts";
import type { Limits } from "./limits.ts";
import type { Shared } from "./schemas.ts";
import { type ServedModel, stopTokensOf } from "./served_model.ts";

/** The model, batcher and limits of a server. */
export interface Engine {
  readonly served: ServedModel;
  readonly batcher: Batcher;
  readonly limits: Limits;
}

/** The token counts of a request. */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: { readonly cached_tokens: number };
}

/** The work that an endpoint requests from the model. */
export interface Order {
  readonly shared: Shared;
  readonly prompts: readonly (readonly number[])[];
  /** The images of the only prompt. */
  readonly images?: readonly ImageInputs[] | undefined;
  readonly maxTokens: number | undefined;
  readonly logProbabilities?: number | undefined;
  /** The constraint on texts. */
  readonly constraint?: TokenConstraint | undefined;
}

export class Work {
  readonly choices: readonly Choice[];
  private readonly promptTokens: number;

  /** Starts all texts, or none. @throws {ApiError} 400, 429 */
  constructor({ served, batcher, limits }: Engine, order: Order, signal: AbortSignal) {
    const { shared, prompts } = order;
    const count = shared.n ?? 1;
    checkChoices(limits, shared, prompts.length);
    this.promptTokens = prompts.reduce((sum, { length }) => sum + length, 0);
    const most = Math.floor(limits.tokens / (count * prompts.length));
    const maxTokens = Math.min(order.maxTokens ?? most, most);
    const options = { ...optionsOf(served, order), maxTokens, signal };
    const stops = [shared.stop ?? []].flat();
    const choices: Choice[] = [];
    this.choices = choices;
    try {
      for (const prompt of prompts)
        for (let copy = 0; copy < count; copy++) {
          const stream = batcher.submit(order.images ? { tokens: prompt, images: order.images } : prompt, {
            ...options,
            ...seedOf(shared.seed, copy),
          });
          choices.push(new Choice(choices.length, stream, served.tokenizer, stops));
        }
    } catch (error) {
      this.cancel();
      throw error;
    }
  }

  cancel(): void {
    for (const { stream } of this.choices) stream.cancel();
  }

  get usage(): Usage {
    const completion_tokens = this.choices.reduce((sum, { tokens }) => sum + tokens, 0);
    const cached_tokens = Math.min(
      this.promptTokens,
      this.choices.reduce((sum, { stream }) => sum + stream.reusedTokens, 0),
    );
    return {
      prompt_tokens: this.promptTokens,
      completion_tokens,
      total_tokens: this.promptTokens + completion_tokens,
      prompt_tokens_details: { cached_tokens },
    };
  }
}

/** Checks the number of choices in a request. @throws {ApiError} 400 if prompts times choices exceed the limit */
export function checkChoices({ choices }: Limits, { n }: Shared, prompts: number): void {
  const count = (n ?? 1) * prompts;
  if (count > choices) throw new ApiError(400, `expected at most ${choices} choices, got ${count}`, null, "n");
}

/** Checks a request before its prompts are processed. @throws {ApiError} 400, 429 */
export function checkOrder({ served: { model }, batcher, limits }: Engine, order: Order): void {
  checkChoices(limits, order.shared, order.prompts.length);
  const { contextLength, vocabularySize } = model;
  const isRight = (token: number) => token < vocabularySize;
  if (order.prompts.some((prompt) => prompt.length === 0 || !prompt.every(isRight)))
    throw new ApiError(
      400,
      `expected prompts of at least one token below ${vocabularySize}`,
      "invalid_value",
      "prompt",
    );
  if (order.prompts.some(({ length }) => length >= contextLength))
    throw new ApiError(
      400,
      `expected prompts of fewer than ${contextLength} tokens`,
      "context_length_exceeded",
      "prompt",
    );
  if (batcher.isFull) throw busy("too many texts are waiting; try again later");
}

const SEEDS = 2n ** 64n;
/** Returns a different seed for each choice of a request. */
const seedOf = (seed: number | undefined, copy: number): { seed?: bigint } =>
  seed === undefined ? {} : { seed: BigInt.asUintN(64, (BigInt(seed) + BigInt(copy)) % SEEDS) };

function optionsOf(served: ServedModel, { shared, logProbabilities, constraint }: Order): BatchOptions {
  const { defaults = {} } = served;
  return {
    temperature: shared.temperature ?? defaults.temperature,
    topK: shared.top_k ?? defaults.topK,
    topP: shared.top_p ?? defaults.topP,
    minP: shared.min_p ?? defaults.minP,
    repetitionPenalty: shared.repetition_penalty ?? defaults.repetitionPenalty,
    presencePenalty: shared.presence_penalty,
    frequencyPenalty: shared.frequency_penalty,
    logitBias: shared.logit_bias,
    stopTokens: stopTokensOf(served),
    logProbabilities,
    constraint,
  };
}
