import type { FinishReason, GeneratedToken } from "./sequence.ts";

/**
 * The tokens of one sequence of a {@link Batcher}, as they are generated. Leaving the loop by `break`, or calling
 * `cancel()`, stops generation.
 *
 * @example
 * const stream = batcher.submit(prompt, { maxTokens: 20 });
 * for await (const { token } of stream) console.log(token);
 * console.log(stream.finishReason); // "length"
 */
export class TokenStream implements AsyncIterableIterator<GeneratedToken> {
  private readonly pending: GeneratedToken[] = [];
  private wake: (() => void) | undefined;
  private reason: FinishReason | undefined;
  private failure: { readonly error: unknown } | undefined;
  private canceled = false;
  /** Number of prompt tokens that were not computed, because the cache already had this prefix. */
  reusedTokens = 0;

  /** Why generation ended; undefined during generation, after an error, and after `cancel()`. */
  get finishReason(): FinishReason | undefined {
    return this.pending.length > 0 ? undefined : this.reason;
  }

  /** Whether no more tokens will be added. */
  get isDone(): boolean {
    return this.canceled || this.reason !== undefined || this.failure !== undefined;
  }

  /** @internal */
  push(token: GeneratedToken): void {
    if (this.isDone) return;
    this.pending.push(token);
    this.wake?.();
  }

  /** @internal */
  finish(reason: FinishReason): void {
    if (!this.isDone) this.reason = reason;
    this.wake?.();
  }

  /** @internal */
  fail(error: unknown): void {
    if (!this.isDone) this.failure = { error };
    this.wake?.();
  }

  /** Stops generation, and discards tokens that were not read. */
  cancel(): void {
    this.canceled = true;
    this.pending.length = 0;
    this.wake?.();
  }

  /** Returns the next token, waiting until it is generated. */
  async next(): Promise<IteratorResult<GeneratedToken, undefined>> {
    while (this.pending.length === 0 && !this.isDone)
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    const value = this.pending.shift();
    if (value) return { done: false, value };
    if (this.failure && !this.canceled) throw this.failure.error;
    return { done: true, value: undefined };
  }

  /** Stops generation: called when a loop is left early. */
  async return(): Promise<IteratorResult<GeneratedToken, undefined>> {
    this.cancel();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
