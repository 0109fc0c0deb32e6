import { setTimeout as sleep, setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError, DisposedError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { KeyValueCacheBatch } from "../cache/batch.ts";
import type { CacheFormat } from "../cache/store.ts";
import { inEvaluation } from "../layers/module.ts";
import type { LanguageModel } from "../models/language_model.ts";
import type { ImagePrompt } from "../models/vision_language/images.ts";
import { aModel, promptOrImages, readPrompt, type Tokens } from "../tasks/prompt.ts";
import { aCacheFormat, type BatchOptions, batchParameters, settingsOf } from "./options.ts";
import { Sequence } from "./sequence.ts";
import { type Job, Slot } from "./slot.ts";
import { TokenStream } from "./token_stream.ts";

/** Options of {@link Batcher}. */
export interface BatcherOptions {
  /**
   * Number of sequences generated at once. Each has a key/value cache that grows up to the model's context. Default 8.
   */
  readonly slots?: number | undefined;
  /** Maximum number of requests that may wait for a slot. Default 64. */
  readonly queue?: number | undefined;
  /**
   * Number of prompt tokens computed per step. Between steps, sequences that are already generating get one token each.
   * Default 256.
   */
  readonly promptChunk?: number | undefined;
  /**
   * Storage format of the key/value caches: see {@link CacheFormat}. Default: the dtype that keys and values are
   * computed in.
   */
  readonly cache?: CacheFormat | undefined;
}

const readOptions = parameters("Batcher", {
  model: operand(aModel),
  slots: named(aNumber({ holds: (value) => count.holds(value) && value <= 4096, expected: "1 to 4096" }), 8),
  queue: named(aNumber(count), 64),
  promptChunk: named(aNumber(count), 256),
  cache: named(aCacheFormat),
});
const readSubmit = parameters("Batcher.submit", { tokens: operand(promptOrImages), ...batchParameters });

/**
 * Generates several sequences at once (continuous batching). One pass through the weights computes the next token of
 * every active sequence, and a sequence can join or leave between any two tokens. If a prompt shares a prefix with a
 * sequence that is still in a slot's cache, the prefix is not computed again.
 *
 * Each result depends only on its prompt and options. Its last bits may differ from those of {@link generate}, because
 * a product of several rows sums its terms in another order.
 *
 * @param model a language model; it runs in evaluation mode without gradients
 * @param options see {@link BatcherOptions}
 *
 * @example
 * using batcher = new Batcher(model, { slots: 4 });
 * const texts = prompts.map(async (prompt) => {
 *   for await (const { token } of batcher.submit(prompt, { maxTokens: 20 })) console.log(token);
 * });
 * await Promise.all(texts);
 *
 * @throws {ArgumentError} for an option out of range.
 */
export class Batcher implements Disposable {
  readonly model: LanguageModel;
  private readonly slots: readonly Slot[];
  private readonly queueLimit: number;
  private readonly promptChunk: number;
  private readonly queue: Job[] = [];
  private loop: Promise<void> | undefined;
  private closed = false;

  constructor(model: LanguageModel, options?: BatcherOptions);
  constructor(...values: unknown[]) {
    const { model, slots, queue, promptChunk, cache } = readOptions(values);
    this.model = model;
    this.queueLimit = queue;
    this.promptChunk = promptChunk;
    this.slots = Array.from({ length: slots }, () => new Slot(model.newCache({ format: cache })));
  }

  /** Number of sequences that are being generated. */
  get active(): number {
    return this.slots.filter(({ isBusy }) => isBusy).length;
  }

  /** Number of requests that wait for a slot. */
  get waiting(): number {
    return this.queue.length;
  }

  /** Whether `submit` would reject another request because the queue is full. */
  get isFull(): boolean {
    this.dropDone();
    return this.queue.length >= this.queueLimit;
  }

  /**
   * Starts generating a sequence, or queues it until a slot is free.
   *
   * @param tokens the prompt, or a prompt with images: at least one token, and fewer than the model's context
   * @param options those of `generate`, and `logProbabilities`
   * @returns the generated tokens, as they are computed
   *
   * @throws {ArgumentError} for an option out of range, a prompt that is empty or too long, a token that is not in the
   * vocabulary, and `queueFull`. @throws {DisposedError} after `dispose()`.
   */
  submit(tokens: Tokens | ImagePrompt, options?: BatchOptions): TokenStream;
  submit(...values: unknown[]): TokenStream {
    const { tokens, ...options } = readSubmit(values);
    if (this.closed)
      throw new DisposedError("Batcher.submit", "disposed", "the batcher was used after dispose(); create a new one");
    const { signal, ...settings } = settingsOf("Batcher.submit", options);
    const { tokens: prompt, placed } = readPrompt("Batcher.submit", tokens, this.model);
    this.checkLength(prompt.length);
    if (this.isFull) throw queueFull(this.queueLimit);
    const room = this.model.contextLength - prompt.length;
    const sequence = new Sequence(prompt, { ...settings, maxTokens: Math.min(settings.maxTokens, room) });
    const stream = new TokenStream();
    this.queue.push({ sequence, stream, signal, placed, keys: placed?.keys ?? prompt });
    this.start();
    return stream;
  }

  private checkLength(length: number): void {
    const { contextLength } = this.model;
    if (length < contextLength) return;
    const message = `expected a prompt of fewer than ${contextLength} tokens, the model's context, got ${length}`;
    throw new ArgumentError("Batcher.submit", "promptTooLong", message);
  }

  private start(): void {
    this.loop ??= this.run().finally(() => {
      this.loop = undefined;
      if (this.queue.length > 0) this.start();
    });
  }

  /** Runs steps until no sequence is active and no request waits. */
  private async run(): Promise<void> {
    for (;;) {
      await yieldToEventLoop();
      this.dropDone();
      this.admit();
      const busy = this.slots.filter(({ isBusy }) => isBusy);
      if (busy.length === 0) return;
      const reading = busy.find(({ isReading }) => isReading);
      if (reading) await this.advance([reading], reading.partOf(this.promptChunk));
      const ready = busy.filter(({ isBusy, isReading, pending }) => isBusy && !isReading && pending.length === 1);
      if (ready.length > 0) await this.advance(ready, 1);
      else if (!reading) await Promise.race([...busy.map(({ deciding }) => deciding), patience()]);
    }
  }

  /** Removes requests and sequences that are finished, canceled by their reader, or aborted by their signal. */
  private dropDone(): void {
    for (let at = this.queue.length; at-- > 0; ) if (isOver(this.queue[at])) this.queue.splice(at, 1);
    for (const slot of this.slots) if (slot.job && isOver(slot.job)) slot.release();
  }

  /**
   * Moves requests from the queue to free slots, oldest first. Each gets the slot whose cache has the longest common
   * prefix.
   */
  private admit(): void {
    for (;;) {
      const free = this.slots.filter(({ isBusy }) => !isBusy);
      const job = free.length > 0 ? this.queue.shift() : undefined;
      if (!job) return;
      if (job.sequence.isFull) job.stream.finish("length");
      else free.reduce((best, slot) => (slot.isBetterFor(job, best) ? slot : best)).take(job);
    }
  }

  /**
   * Feeds the next `tokens` pending tokens of each slot, and samples the next token of slots whose prompt is complete.
   */
  private async advance(slots: readonly Slot[], tokens: number): Promise<void> {
    try {
      using logits = tidy(() => noGrad(() => inEvaluation(this.model, () => this.compute(slots, tokens))));
      const values = (await logits.data()) as Rows;
      const width = this.model.vocabularySize;
      for (const [row, slot] of slots.entries()) slot.accept(values.subarray(row * width, (row + 1) * width), tokens);
      await this.allDecided(slots);
    } catch (error) {
      for (const slot of slots) slot.fail(error);
    }
  }

  /**
   * Computing the tokens that a constraint allows may take long. The other sequences wait at most `PATIENCE` for it.
   */
  private async allDecided(slots: readonly Slot[]): Promise<void> {
    if (!slots.some(({ job }) => job?.sequence.isHeld)) return;
    await Promise.race([Promise.all(slots.map(({ deciding }) => deciding)), patience()]);
  }

  private compute(slots: readonly Slot[], tokens: number): Tensor {
    const rows = slots.map(({ pending }) => pending.slice(0, tokens));
    const caches = slots.map(({ cache }) => cache);
    const cache = caches.length === 1 ? caches[0] : new KeyValueCacheBatch(caches);
    const placed = slots.length === 1 ? slots[0].placedPart(tokens) : undefined;
    return this.model.forward(tensor(rows, { dtype: "int32" }), { cache, placed, lastOnly: true });
  }

  /** Fails all sequences and queued requests with a `DisposedError`, and frees the caches. */
  dispose(): void {
    this.closed = true;
    const error = new DisposedError("Batcher", "disposed", "the batcher was disposed during generation");
    for (const { stream } of this.queue.splice(0)) stream.fail(error);
    for (const slot of this.slots) slot.fail(error);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/**
 * Milliseconds to wait for sequences whose next token is not sampled yet: one pass over all of them is faster than
 * several.
 */
const PATIENCE = 20;
const patience = () => sleep(PATIENCE, undefined, { ref: false });

interface Rows extends ArrayLike<number> {
  subarray(start: number, end: number): ArrayLike<number>;
}

function isOver({ stream, signal }: Job): boolean {
  if (signal?.aborted) stream.fail(signal.reason);
  return stream.isDone;
}

const queueFull = (limit: number): ArgumentError =>
  new ArgumentError("Batcher.submit", "queueFull", `the queue is full (${limit} requests wait); try again later`);
