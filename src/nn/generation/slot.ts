/** A slot of a batch: a key/value cache, and the sequence that uses it. */
import type { KeyValueCache } from "../cache/cache.ts";
import type { PlacedImages, PlacedPrompt } from "../models/vision_language/images.ts";
import type { Sequence } from "./sequence.ts";
import type { TokenStream } from "./token_stream.ts";

/** @internal A submitted request. */
export interface Job {
  readonly sequence: Sequence;
  readonly stream: TokenStream;
  readonly signal: AbortSignal | undefined;
  /** The images of the prompt and their places, if it has any. */
  readonly placed: PlacedPrompt | undefined;
  /** The tokens of the prompt. Image tokens are replaced by negative numbers that identify the image. */
  readonly keys: readonly number[];
}

/** @internal */
export class Slot {
  /**
   * Keys of the tokens whose keys and values are in the cache: see {@link Job}. They stay after a sequence ends, for a
   * prompt with the same prefix.
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
  isBetterFor(job: Job, other: Slot): boolean {
    const more = this.sharedWith(job) - other.sharedWith(job);
    return more > 0 || (more === 0 && this.lastUse < other.lastUse);
  }

  /** Starts a sequence. The last token of the prompt is always computed, because its logits are needed. */
  take(job: Job): void {
    const { prompt } = job.sequence;
    const shared = this.sharedWith(job);
    if (shared === 0) this.cache.reset();
    else this.cache.truncate(shared);
    this.tokens = job.keys.slice(0, shared);
    this.pending = prompt.slice(shared);
    this.job = job;
    job.stream.reusedTokens = shared;
  }

  /**
   * Length of the prefix that the cache already has; 0 if a sliding window dropped keys that the rest would attend to.
   */
  private sharedWith({ keys }: Job): number {
    const most = Math.min(this.tokens.length, keys.length - 1);
    let shared = 0;
    while (shared < most && this.tokens[shared] === keys[shared]) shared++;
    return this.cache.canTruncate(shared) ? shared : 0;
  }

  /** Whether the slot still has to process a prompt, which can't share a step with other slots. */
  get isReading(): boolean {
    return this.pending.length > 1 || this.placedCount > 0;
  }

  /** The number of pending tokens of a prompt with images. */
  private get placedCount(): number {
    return Math.max(0, (this.job?.placed?.length ?? 0) - this.tokens.length);
  }

  /**
   * Returns the number of pending tokens to compute together: about `most`, but never a part of an image whose tokens
   * must be computed together.
   */
  partOf(most: number): number {
    let count = Math.min(this.pending.length, most);
    while (this.job?.placed?.isJoined(this.tokens.length + count)) count++;
    return count;
  }

  /** Returns the images among the next `count` pending tokens. Call it within `noGrad`. */
  placedPart(count: number): PlacedImages | undefined {
    return this.placedCount > 0 ? this.job!.placed!.part(this.tokens.length, count) : undefined;
  }

  /** Takes the logits after the next `tokens` pending tokens. Sampling may finish later. */
  accept(logits: ArrayLike<number>, tokens: number): void {
    for (const token of this.pending.slice(0, tokens)) this.tokens.push(this.job?.keys[this.tokens.length] ?? token);
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
    this.job?.placed?.[Symbol.dispose]();
    this.job = undefined;
    this.deciding = undefined;
    this.pending = [];
    this.lastUse = performance.now();
  }
}
