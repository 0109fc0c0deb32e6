import type { FinishReason, GeneratedToken } from "./sequence.ts";

/**
 * The tokens of one text of a {@link Batcher}, as they come. Who stops reading, by `break` or `cancel()`, ends
 * the computation of further ones.
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
  private cancelled = false;
  /** How many tokens of the prompt were not computed, because the text before began alike. */
  reusedTokens = 0;

  /** Why the text ended; undefined while it goes on, after an error, and for a reader who left before. */
  get finishReason(): FinishReason | undefined {
    return this.pending.length > 0 ? undefined : this.reason;
  }

  /** Whether no further token will be added. */
  get isDone(): boolean {
    return this.cancelled || this.reason !== undefined || this.failure !== undefined;
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

  /** Ends the text: no further token is computed. */
  cancel(): void {
    this.cancelled = true;
    this.pending.length = 0;
    this.wake?.();
  }

  async next(): Promise<IteratorResult<GeneratedToken, undefined>> {
    while (this.pending.length === 0 && !this.isDone)
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    const value = this.pending.shift();
    if (value) return { done: false, value };
    if (this.failure && !this.cancelled) throw this.failure.error;
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<GeneratedToken, undefined>> {
    this.cancel();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
