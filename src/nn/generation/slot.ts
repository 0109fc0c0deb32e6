/** A slot of a batch: a key/value cache, and the sequence that uses it. */
import type { KeyValueCache } from "../cache/cache.ts";
import type { Sequence } from "./sequence.ts";
import type { TokenStream } from "./token_stream.ts";

/** @internal A submitted request. */
export interface Job {
  readonly sequence: Sequence;
  readonly stream: TokenStream;
  readonly signal: AbortSignal | undefined;
}

/** @internal */
export class Slot {
  /**
   * Tokens whose keys and values are in the cache. They stay after a sequence ends, for a prompt with the same prefix.
   */
  private tokens: number[] = [];
  /** Tokens that are not computed yet: the rest of the prompt, or the token that was generated last. */
  pending: readonly number[] = [];
  job: Job | undefined;
  /** Settles when the next token is sampled; undefined if none is being sampled. */
  deciding: Promise<void> | undefined;
  private lastUse = 0;

  constructor(readonly cache: KeyValueCache) {}

  get isBusy(): boolean {
    return this.job !== undefined;
  }

  /**
   * Whether its cache shares a longer prefix with a prompt than another slot's; in a tie, whether it was used less
   * recently.
   */
  isBetterFor(prompt: readonly number[], other: Slot): boolean {
    const more = this.sharedWith(prompt) - other.sharedWith(prompt);
    return more > 0 || (more === 0 && this.lastUse < other.lastUse);
  }

  /** Starts a sequence. The last token of the prompt is always computed, because its logits are needed. */
  take(job: Job): void {
    const { prompt } = job.sequence;
    const shared = this.sharedWith(prompt);
    if (shared === 0) this.cache.reset();
    else this.cache.truncate(shared);
    this.tokens = prompt.slice(0, shared);
    this.pending = prompt.slice(shared);
    this.job = job;
    job.stream.reusedTokens = shared;
  }

  /**
   * Length of the prefix that the cache already has; 0 if a sliding window dropped keys that the rest would attend to.
   */
  private sharedWith(prompt: readonly number[]): number {
    const most = Math.min(this.tokens.length, prompt.length - 1);
    let shared = 0;
    while (shared < most && this.tokens[shared] === prompt[shared]) shared++;
    return this.cache.canTruncate(shared) ? shared : 0;
  }

  /** Takes the logits after the next `tokens` pending tokens. Sampling may finish later. */
  accept(logits: ArrayLike<number>, tokens: number): void {
    this.tokens.push(...this.pending.slice(0, tokens));
    this.pending = this.pending.slice(tokens);
    const { job } = this;
    if (!job || this.pending.length > 0) return;
    const deciding = this.decide(job, logits).finally(() => {
      if (this.deciding === deciding) this.deciding = undefined;
    });
    this.deciding = deciding;
  }

  private async decide(job: Job, logits: ArrayLike<number>): Promise<void> {
    try {
      const chosen = await job.sequence.next(logits);
      if (this.job !== job) return; // the sequence was released while its token was sampled
      if (chosen) {
        job.stream.push(chosen);
        this.pending = [chosen.token];
      }
      if (!chosen || job.sequence.isFull) this.finish(chosen ? "length" : "stop");
    } catch (error) {
      if (this.job === job) this.fail(error);
    }
  }

  private finish(reason: "stop" | "length"): void {
    this.job?.stream.finish(reason);
    this.release();
  }

  /** Ends the sequence with an error. The cache is cleared, because a failed step may have written part of its keys. */
  fail(error: unknown): void {
    this.job?.stream.fail(error);
    this.release();
    this.cache.dispose();
    this.tokens = [];
  }

  /** Frees the slot for another sequence. */
  release(): void {
    this.job?.sequence[Symbol.dispose]();
    this.job = undefined;
    this.deciding = undefined;
    this.pending = [];
    this.lastUse = performance.now();
  }
}
