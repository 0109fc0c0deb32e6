import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { lastElement } from "../../../core/collections.ts";
import { ArgumentError } from "../../../core/errors.ts";
import { either, instanceOf } from "../../../core/kinds.ts";
import { type Kind, operand, parameters } from "../../../core/parameters.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { EncoderDecoder } from "../../models/encoder_decoder/encoder_decoder.ts";
import { MOST_TEXTS } from "../../tasks/batches.ts";
import { aModel, checkTokens, prompt, type Tokens } from "../../tasks/prompt.ts";
import { candidatesOf, drawFrom, largestOf, uniformOf } from "../sampling.ts";
import type { FinishReason } from "../sequence.ts";
import { type BeamResult, BeamSearch } from "./beams.ts";
import { type BatchSettings, batchOptions, batchSettings, type GenerateBatchOptions } from "./options.ts";
import { type GeneratingModel, Rows } from "./rows.ts";
import { applyRules } from "./rules.ts";

/** A generated text. */
export interface GeneratedText {
  /** The generated tokens, without the prompt or start token and without the stop token. */
  readonly tokens: readonly number[];
  /** Σ ln p / length ^ lengthPenalty of beam search; undefined without beams. */
  readonly score: number | undefined;
  /** Why generation ended: at a stop token, or at the length limit. */
  readonly finishReason: FinishReason;
}

/** @internal */
export const anEncoderDecoder: Kind<EncoderDecoder> = instanceOf(EncoderDecoder, "an encoder-decoder model");

const texts: Kind<readonly (ArrayLike<unknown> | Tensor)[]> = {
  expected: "a list of texts, each a list of tokens",
  parse(value, operation, name) {
    if (!Array.isArray(value) || value.length === 0 || value.length > MOST_TEXTS) return undefined;
    const lists = value.map((one) => prompt.parse(one, operation, name));
    return lists.some((one) => one === undefined) ? undefined : (lists as (ArrayLike<unknown> | Tensor)[]);
  },
};

const readCall = parameters("generateBatch", {
  model: operand(either(aModel, anEncoderDecoder)),
  texts: operand(texts),
  ...batchOptions,
});

/**
 * Generates texts for a batch: by greedy decoding, beam search or sampling. For an encoder-decoder model such as T5 or
 * BART, each text is the input of the encoder, and the model's files set the defaults of many options, such as
 * `numBeams`. For a language model, each text is a prompt. Results match `generate` in `transformers`.
 *
 * @param texts the tokens of each text, at least one, of any lengths
 * @param options see {@link GenerateBatchOptions}; the default of `temperature` is 0
 * @returns for each text, in order, `numReturnSequences` results, the best first
 *
 * @example
 * const [[best]] = await nn.generateBatch(model, [tokens], { numBeams: 4, maxTokens: 50 });
 * tokenizer.decode(best.tokens);
 *
 * @throws {ArgumentError} for an option out of range, an empty text, and a token that is not in the vocabulary. During
 * generation: {@link ArgumentError} for logits of NaN, and the signal's reason.
 * @throws {ShapeError} for a text longer than the context.
 */
export function generateBatch(
  model: GeneratingModel,
  texts: readonly Tokens[],
  options?: GenerateBatchOptions,
): Promise<GeneratedText[][]>;
export async function generateBatch(...values: unknown[]): Promise<GeneratedText[][]> {
  const { model, texts, ...options } = readCall(values);
  const size = model instanceof EncoderDecoder ? model.encoder.vocabularySize : model.vocabularySize;
  const lists = texts.map((tokens) => checkTokens("generateBatch", tokens, size));
  const defaults = model instanceof EncoderDecoder ? model.generation : {};
  return generatedOf(model, lists, batchSettings("generateBatch", options, defaults, model.vocabularySize));
}

/** @internal Generates texts in batches of similar lengths. */
export async function generatedOf(
  model: GeneratingModel,
  lists: readonly (readonly number[])[],
  settings: BatchSettings,
): Promise<GeneratedText[][]> {
  const order = lists.map((_, index) => index).sort((a, b) => lists[b].length - lists[a].length || a - b);
  const found = new Array<GeneratedText[]>(lists.length);
  for (let start = 0; start < order.length; start += settings.batch) {
    const indices = order.slice(start, start + settings.batch);
    const members = indices.map((index) => lists[index]);
    const results = await generated(model, members, withLimit(model, members, settings));
    for (const [at, index] of indices.entries()) found[index] = results[at];
  }
  return found;
}

/** Limits `maxTokens` to the free space in the context. @throws {ArgumentError} if it has none */
function withLimit(
  model: GeneratingModel,
  members: readonly (readonly number[])[],
  settings: BatchSettings,
): BatchSettings {
  const before = model instanceof EncoderDecoder ? 1 : Math.max(...members.map(({ length }) => length));
  const room = model.contextLength - before;
  if (room < 1)
    throw new ArgumentError(
      "generateBatch",
      "noRoom",
      `expected prompts below the context of ${model.contextLength} tokens, got ${before}`,
    );
  return { ...settings, maxTokens: Math.min(settings.maxTokens, room) };
}

async function generated(
  model: GeneratingModel,
  members: readonly (readonly number[])[],
  settings: BatchSettings,
): Promise<GeneratedText[][]> {
  if (settings.maxTokens === 0) return members.map(() => [{ tokens: [], score: undefined, finishReason: "length" }]);
  using rows = new Rows(model, members, settings.numBeams > 1);
  const prompts = model instanceof EncoderDecoder ? members.map(() => [model.description.startToken]) : members;
  return await (settings.numBeams > 1 ? searched : decoded)(rows, prompts, settings);
}

/** Beam search. */
async function searched(
  rows: Rows,
  prompts: readonly (readonly number[])[],
  settings: BatchSettings,
): Promise<GeneratedText[][]> {
  const { numBeams, numReturnSequences, stopTokens, signal } = settings;
  const searches = prompts.map((prompt) => new BeamSearch(prompt, settings));
  // at first each text has one row
  let scores: Float32Array[] = (await rows.first()).flatMap((row) =>
    Array.from({ length: numBeams }, () => row.slice()),
  );
  let isFirst = true;
  for (;;) {
    await yieldToEventLoop();
    signal?.throwIfAborted();
    for (const [text, search] of searches.entries())
      if (!search.isDone) search.advance(scores.slice(text * numBeams, (text + 1) * numBeams));
    if (searches.every((search) => search.isDone)) break;
    const origins = searches.flatMap(({ origins }, text) =>
      origins.map((beam) => (isFirst ? text : text * numBeams + beam)),
    );
    scores = await rows.next(
      searches.flatMap(({ lastTokens }) => lastTokens),
      origins,
    );
    isFirst = false;
  }
  const resultOf = ({ tokens, score }: BeamResult): GeneratedText => {
    const ends = stopTokens.has(lastElement(tokens));
    return { tokens: ends ? tokens.slice(0, -1) : tokens, score, finishReason: ends ? "stop" : "length" };
  };
  return searches.map((search) => search.results().slice(0, numReturnSequences).map(resultOf));
}

/** A row of greedy decoding or sampling. */
interface Decoding {
  readonly tokens: number[];
  isDone: boolean;
}

/** Greedy decoding, or sampling. */
async function decoded(
  rows: Rows,
  prompts: readonly (readonly number[])[],
  settings: BatchSettings,
): Promise<GeneratedText[][]> {
  const { numReturnSequences: results, stopTokens, maxTokens, signal } = settings;
  const texts = prompts.flatMap((prompt) =>
    Array.from({ length: results }, (): Decoding => ({ tokens: [...prompt], isDone: false })),
  );
  let scores: Float32Array[] = (await rows.first()).flatMap((row) =>
    Array.from({ length: results }, () => row.slice()),
  );
  for (let count = 0; ; ) {
    await yieldToEventLoop();
    signal?.throwIfAborted();
    for (const [at, text] of texts.entries()) {
      // a text that has ended continues with its last token, and the result is ignored
      const token = text.isDone
        ? lastElement(text.tokens)
        : chosen(scores[at], { tokens: text.tokens, count }, settings);
      if (!text.isDone) text.tokens.push(token);
      text.isDone ||= stopTokens.has(token);
    }
    if (++count >= maxTokens || texts.every(({ isDone }) => isDone)) break;
    const origins = texts.map((_, at) => (count === 1 ? Math.floor(at / results) : at));
    scores = await rows.next(
      texts.map(({ tokens }) => lastElement(tokens)),
      origins,
    );
  }
  return prompts.map((prompt, text) =>
    texts.slice(text * results, (text + 1) * results).map(({ tokens, isDone }) => ({
      tokens: tokens.slice(prompt.length, isDone ? -1 : undefined),
      score: undefined,
      finishReason: isDone ? "stop" : "length",
    })),
  );
}

function chosen(row: Float32Array, text: Parameters<typeof applyRules>[1], settings: BatchSettings): number {
  applyRules(row, text, settings);
  const scores = Float64Array.from(row);
  const { sampling, generator } = settings;
  if (sampling.temperature === 0) return largestOf(scores);
  return drawFrom(candidatesOf(scores, sampling), uniformOf(generator));
}
