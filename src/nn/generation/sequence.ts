/** The state of one sequence during generation: previous tokens, and how the next one is sampled. */
import type { TokenMatcher } from "../../text/constraint/token_constraint.ts";
import type { GenerateSettings } from "./options.ts";
import { chooseToken, largestFirst } from "./sampling.ts";

/** Why generation ended: at a stop token or stop text, or at the length limit. */
export type FinishReason = "stop" | "length";

/** The model's probability of a token, before penalties, biases, temperature and truncation. */
export interface TokenChance {
  /** The token id. */
  readonly token: number;
  /** ln of the softmax of the model's logits. */
  readonly logProbability: number;
}

/** A generated token. */
export interface GeneratedToken {
  /** The token id. */
  readonly token: number;
  /** The logarithm of the token's probability; present if the option `logProbabilities` is set. */
  readonly logProbability?: number;
  /** The most likely tokens in descending order, as many as `logProbabilities` says. */
  readonly likeliest?: readonly TokenChance[];
}

/** @internal */
export type SequenceSettings = Pick<
  GenerateSettings,
  "sampling" | "maxTokens" | "stopTokens" | "generator" | "logProbabilities" | "constraint"
>;

/** @internal */
export class Sequence implements Disposable {
  readonly prompt: readonly number[];
  readonly seen: Set<number>;
  readonly counts = new Map<number, number>();
  private readonly settings: SequenceSettings;
  private count = 0;
  private isDisposed = false;
  private matcher: TokenMatcher | undefined;

  constructor(prompt: readonly number[], settings: SequenceSettings) {
    this.prompt = prompt;
    this.seen = new Set(prompt);
    this.settings = settings;
  }

  /** Whether the sequence has a constraint. */
  get isHeld(): boolean {
    return this.settings.constraint !== undefined;
  }

  /** Whether the sequence has reached `maxTokens`. */
  get isFull(): boolean {
    return this.count >= this.settings.maxTokens;
  }

  /**
   * Samples the next token; undefined if the sequence ends. @throws {ArgumentError} for logits without a finite
   * maximum.
   */
  async next(logits: ArrayLike<number>): Promise<GeneratedToken | undefined> {
    const { sampling, generator, stopTokens, logProbabilities, constraint } = this.settings;
    if (constraint) this.matcher ??= await this.started(constraint.start(stopTokens));
    if (this.matcher?.isDone) return undefined;
    const token = chooseToken(
      logits,
      this,
      sampling,
      generator,
      this.matcher && ((scores) => this.matcher!.forbid(scores)),
    );
    if (stopTokens.has(token)) return undefined;
    await this.matcher?.accept(token);
    this.seen.add(token);
    this.counts.set(token, (this.counts.get(token) ?? 0) + 1);
    this.count++;
    return logProbabilities === undefined ? { token } : { token, ...chancesOf(logits, token, logProbabilities) };
  }

  /** Waits for a matcher. If the sequence was disposed meanwhile, the matcher is disposed too. */
  private async started(matcher: Promise<TokenMatcher>): Promise<TokenMatcher> {
    const ready = await matcher;
    if (this.isDisposed) ready[Symbol.dispose]();
    return ready;
  }

  [Symbol.dispose](): void {
    this.isDisposed = true;
    this.matcher?.[Symbol.dispose]();
    this.matcher = undefined;
  }
}

/** @internal Returns the log probability of a token, and of the `count` most likely tokens. */
export function chancesOf(logits: ArrayLike<number>, token: number, count: number): Omit<GeneratedToken, "token"> {
  let max = -Infinity;
  for (let at = 0; at < logits.length; at++) max = Math.max(max, logits[at]);
  let sum = 0;
  for (let at = 0; at < logits.length; at++) sum += Math.exp(logits[at] - max);
  const logSum = max + Math.log(sum);
  const chance = (of: number): TokenChance => ({ token: of, logProbability: logits[of] - logSum });
  const likeliest = largestFirst(Float64Array.from(logits), Math.min(count, logits.length)).map(chance);
  return { logProbability: chance(token).logProbability, likeliest };
}
