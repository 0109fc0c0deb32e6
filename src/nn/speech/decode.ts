/** Decodes windows of audio to tokens. */

import { noGrad } from "../../autograd/modes.ts";
import { lastElement } from "../../core/collections.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import type { Generator } from "../../random/generator.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { uniformOf } from "../generation/sampling.ts";
import type { Whisper, WhisperCache } from "../models/whisper/whisper.ts";
import { logSumExp, type Rule } from "./rules.ts";

/** The tokens of a window, and their mean log probability. */
export interface Decoded {
  /** The tokens after the prompt, without the end token. */
  readonly tokens: readonly number[];
  readonly temperature: number;
  /** The mean log probability of the tokens and of the end token. */
  readonly averageLogProbability: number;
  readonly noSpeechProbability: number;
}

/** How windows are decoded. */
export interface Decoding {
  readonly temperature: number;
  readonly rule: Rule;
  /** The maximum number of tokens after the prompt. */
  readonly maxTokens: number;
  readonly endToken: number;
  /** The number of prompt tokens from the start token on. */
  readonly startLength: number;
  readonly noSpeechToken: number | undefined;
  readonly generator: Generator;
  readonly signal: AbortSignal | undefined;
}

interface Row {
  readonly tokens: number[];
  sum: number;
  isDone: boolean;
}

/**
 * Decodes some windows together.
 *
 * @param states the encoder's states, [windows, audioPositions, width]
 * @param prompts one for each window, all of the same length
 */
export async function decodeWindows(
  model: Whisper,
  states: Tensor,
  prompts: readonly (readonly number[])[],
  decoding: Decoding,
): Promise<Decoded[]> {
  using cache = noGrad(() => model.newCache(states));
  const { startLength, endToken, noSpeechToken, temperature, signal } = decoding;
  const length = prompts[0].length;
  const most = Math.min(decoding.maxTokens, model.description.contextLength - length);
  const rows = prompts.map((): Row => ({ tokens: [], sum: 0, isDone: most <= 0 }));
  const first = await logitsOf(model, cache, prompts, startLength);
  const noSpeech = first.map((logits) => {
    const atStart = logits.subarray(0, logits.length / startLength);
    return noSpeechToken === undefined ? 0 : Math.exp(atStart[noSpeechToken] - logSumExp(atStart));
  });
  let logits = first.map((all) => all.subarray((all.length / startLength) * (startLength - 1)));
  for (let count = 0; count < most; count++) {
    signal?.throwIfAborted();
    for (const [at, row] of rows.entries()) if (!row.isDone) extend(row, logits[at], decoding);
    if (rows.every(({ isDone }) => isDone) || count === most - 1) break;
    const next = rows.map(({ tokens, isDone }) => [isDone ? endToken : lastElement(tokens)]);
    logits = await logitsOf(model, cache, next, 1);
  }
  return rows.map(({ tokens, sum }, at) => ({
    tokens,
    temperature,
    noSpeechProbability: noSpeech[at],
    averageLogProbability: sum / (tokens.length + 1),
  }));
}

/** Returns the logits after the last `count` tokens of each row, one row after the other. */
async function logitsOf(
  model: Whisper,
  cache: WhisperCache,
  tokens: readonly (readonly number[])[],
  count: number,
): Promise<Float32Array[]> {
  const given = tensor(tokens as number[][], { dtype: "int32" });
  using logits = noGrad(() => tidy(() => toDType(model.decodeWith(given, cache, { last: count }), "float32")));
  const values = await logits.data();
  const size = values.length / tokens.length;
  return tokens.map((_, row) => values.slice(row * size, (row + 1) * size));
}

/** Chooses the next token of a row. */
function extend(row: Row, logits: Float32Array, { rule, temperature, endToken, generator }: Decoding): void {
  rule(logits, row.tokens);
  const total = logSumExp(logits);
  const token = temperature === 0 ? likeliest(logits) : drawn(logits, temperature, generator);
  row.sum += logits[token] - total;
  if (token === endToken) row.isDone = true;
  else row.tokens.push(token);
}

/** @internal Returns the index of the largest value; the first of ties. */
export function likeliest(values: ArrayLike<number>): number {
  let best = 0;
  for (let at = 1; at < values.length; at++) if (values[at] > values[best]) best = at;
  return best;
}

function drawn(logits: Float32Array, temperature: number, generator: Generator): number {
  const scaled = logits.map((value) => value / temperature);
  const total = logSumExp(scaled);
  let left = uniformOf(generator);
  let last = 0;
  for (const [at, value] of scaled.entries()) {
    const probability = Math.exp(value - total);
    if (probability === 0) continue;
    last = at;
    left -= probability;
    if (left < 0) break;
  }
  return last;
}
