/** A place in a batch: a cache, and the text that is in it. */
import type { KeyValueCache } from "../cache/cache.ts";
import type { Sequence } from "./sequence.ts";
import type { TokenStream } from "./token_stream.ts";

/** @internal A text that was asked for. */
export interface Job {
  readonly sequence: Sequence;
  readonly stream: TokenStream;
  readonly signal: AbortSignal | undefined;
}

/** @internal */
export class Slot {
  /** The tokens whose keys and values are in the cache: also after the text ended, for one that begins alike. */
  private tokens: number[] = [];
  /** The tokens of the text that are not computed yet: of its prompt, or the last one. */
  pending: readonly number[] = [];
  job: Job | undefined;
  /** Settles when the next token is chosen; undefined where it is. */
  deciding: Promise<void> | undefined;
  private lastUse = 0;

  constructor(readonly cache: KeyValueCache) {}

  get isBusy(): boolean {
    return this.job !== undefined;
  }

  /** Whether it holds more of the beginning of a prompt than another; if as much, whether it was left earlier. */
  isBetterFor(prompt: readonly number[], other: Slot): boolean {
    const more = this.sharedWith(prompt) - other.sharedWith(prompt);
    return more > 0 || (more === 0 && this.lastUse < other.lastUse);
  }

  /** Starts a text. The last token of its prompt is always computed: its logits are wanted. */
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

  /** How much of the beginning of a prompt need not be computed: none where windows have dropped what it needs. */
  private sharedWith(prompt: readonly number[]): number {
    const most = Math.min(this.tokens.length, prompt.length - 1);
    let shared = 0;
    while (shared < most && this.tokens[shared] === prompt[shared]) shared++;
    return this.cache.canTruncate(shared) ? shared : 0;
  }

  /** Takes the logits after so many of the pending tokens. The next one may be decided later. */
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
      if (this.job !== job) return; // it ended meanwhile
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

  /** Ends the text with an error. What is in the cache is forgotten: nobody knows what it is. */
  fail(error: unknown): void {
    this.job?.stream.fail(error);
    this.release();
    this.cache.dispose();
    this.tokens = [];
  }

  /** Makes room for another text. */
  release(): void {
    this.job?.sequence[Symbol.dispose]();
    this.job = undefined;
    this.deciding = undefined;
    this.pending = [];
    this.lastUse = performance.now();
  }
}
