/**
 * Speculative decoding: a small model drafts tokens x₁ … x_γ, and the large model computes the logits of all of them in
 * one pass.
 *
 *     accept xᵢ with probability min(1, p(xᵢ) / q(xᵢ))        p: the large model's distribution, q: the small one's
 *     at the first rejection: sample from max(0, p − q) / Σ max(0, p − q)
 *     after γ accepted tokens: sample one more from p
 *
 * The tokens have the large model's distribution, regardless of the small model's.
 *
 * Source: Y. Leviathan, M. Kalman and Y. Matias, "Fast inference from transformers via speculative decoding", 2023.
 */

import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { lastElement } from "../../core/collections.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import type { Generator } from "../../random/generator.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { KeyValueCache } from "../cache/cache.ts";
import { inEvaluation } from "../layers/module.ts";
import type { LanguageModel } from "../models/language_model.ts";
import type { GenerateSettings, Sampling } from "./options.ts";
import { candidatesOf, drawFrom, type History, largestOf, scoresOf, uniformOf } from "./sampling.ts";

/** Probabilities by token. */
type Distribution = Float64Array;

/** @internal Generates the tokens after a prompt, until either model's context is full. */
export async function* generateDrafted(
  model: LanguageModel,
  draft: LanguageModel,
  prompt: readonly number[],
  settings: GenerateSettings,
): AsyncGenerator<number, void, undefined> {
  const { sampling, maxTokens, stopTokens, generator, signal, draftTokens, cache } = settings;
  using large = new Reader(model, model.newCache({ format: cache }), prompt.length, sampling);
  using small = new Reader(draft, draft.newCache({ format: cache }), prompt.length, sampling);
  const tokens = [...prompt];
  const most = Math.min(prompt.length + maxTokens, model.contextLength, draft.contextLength);
  while (tokens.length < most) {
    await yieldToEventLoop();
    signal?.throwIfAborted();
    const count = Math.min(draftTokens, most - tokens.length - 1, roomIn(model, tokens.length));
    const drafted = await proposals(small, tokens, count, generator);
    const guess = drafted.map(({ token }) => token);
    const wanted = await large.distributions([...tokens, ...guess], guess.length + 1);
    for (const token of verified(drafted, wanted, generator)) {
      if (stopTokens.has(token)) return;
      tokens.push(token);
      yield token;
    }
    for (const reader of [large, small]) reader.keep(tokens.length - 1);
  }
}

/**
 * Number of tokens that still fit LongRoPE's original context. One pass must not cross its end, because longer texts
 * are rotated by other factors.
 */
const roomIn = ({ originalContextLength: original }: LanguageModel, length: number): number =>
  length > original ? Infinity : original - length;

interface Proposal {
  readonly token: number;
  readonly chances: Distribution;
}

async function proposals(reader: Reader, tokens: readonly number[], count: number, generator: Generator) {
  const found: Proposal[] = [];
  const text = [...tokens];
  for (let at = 0; at < count; at++) {
    const [chances] = await reader.distributions(text, 1);
    const token = draw(chances, generator);
    found.push({ token, chances: chances });
    text.push(token);
  }
  return found;
}

/** The accepted draft tokens, and one token that is sampled from the large model. */
function verified(drafted: readonly Proposal[], wanted: readonly Distribution[], generator: Generator): number[] {
  const accepted: number[] = [];
  for (const [at, { token, chances }] of drafted.entries()) {
    const probabilities = wanted[at];
    if (uniformOf(generator) * chances[token] >= probabilities[token]) {
      const remainder = probabilities.map((chance, other) => Math.max(0, chance - chances[other]));
      return [...accepted, draw(remainder, generator)];
    }
    accepted.push(token);
  }
  return [...accepted, draw(lastElement(wanted), generator)];
}

const draw = (weights: Distribution, generator: Generator): number =>
  drawFrom({ tokens: Uint32Array.from(weights.keys()), weights }, uniformOf(generator));

/** A model with its cache of the text so far. */
class Reader implements Disposable {
  constructor(
    private readonly model: LanguageModel,
    private readonly cache: KeyValueCache,
    private readonly promptLength: number,
    private readonly sampling: Sampling,
  ) {}

  /** Computes the distributions of the next token after each of the last `count` prefixes of a text. */
  async distributions(text: readonly number[], count: number): Promise<Distribution[]> {
    const start = this.cache.position;
    const added = [text.slice(start)];
    const compute = () => this.model.forward(tensor(added, { dtype: "int32" }), { cache: this.cache });
    using logits = tidy(() => noGrad(() => inEvaluation(this.model, compute)));
    const values = (await logits.data()) as Float32Array;
    const width = this.model.vocabularySize;
    return Array.from({ length: count }, (_, at) => {
      const length = text.length - count + at + 1;
      const row = length - start - 1;
      return this.distributionOf(values.subarray(row * width, (row + 1) * width), text.slice(0, length));
    });
  }

  private distributionOf(logits: ArrayLike<number>, text: readonly number[]): Distribution {
    const scores = scoresOf(logits, historyOf(text, this.promptLength), this.sampling);
    const chances = new Float64Array(scores.length);
    if (this.sampling.temperature === 0) {
      chances[largestOf(scores)] = 1;
      return chances;
    }
    const { tokens, weights } = candidatesOf(scores, this.sampling);
    let sum = 0;
    for (let at = 0; at < weights.length; at++) sum += weights[at];
    for (let at = 0; at < weights.length; at++) chances[tokens[at]] = weights[at] / sum;
    return chances;
  }

  /** Truncates the cache to the first `length` tokens. */
  keep(length: number): void {
    this.cache.truncate(Math.min(length, this.cache.position));
  }

  [Symbol.dispose](): void {
    this.cache.dispose();
  }
}

function historyOf(text: readonly number[], promptLength: number): History {
  const counts = new Map<number, number>();
  for (const token of text.slice(promptLength)) counts.set(token, (counts.get(token) ?? 0) + 1);
  return { seen: new Set(text), counts };
}
