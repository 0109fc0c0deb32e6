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
import { aCacheFormat, type BatchOptions, batchParameters, settingsOf } from "./options.ts";
import { aModel, checkTokens, prompt, type Tokens } from "./prompt.ts";
import { Sequence } from "./sequence.ts";
import { type Job, Slot } from "./slot.ts";
import { TokenStream } from "./token_stream.ts";

/** Options of {@link Batcher}. */
export interface BatcherOptions {
  /** How many texts are generated at once; each has a cache of up to the model's context. Default 8. */
  readonly slots?: number | undefined;
  /** How many more may wait. Default 64. */
  readonly queue?: number | undefined;
  /** How many tokens of a prompt are computed before texts that wait for one token each have theirs. Default 256. */
  readonly promptChunk?: number | undefined;
  /** How caches keep keys and values: see {@link CacheFormat}. Default: as they are computed. */
  readonly cache?: CacheFormat | undefined;
}

const readOptions = parameters("Batcher", {
  model: operand(aModel),
  slots: named(aNumber({ holds: (value) => count.holds(value) && value <= 4096, expected: "1 to 4096" }), 8),
  queue: named(aNumber(count), 64),
  promptChunk: named(aNumber(count), 256),
  cache: named(aCacheFormat),
});
const readSubmit = parameters("Batcher.submit", { tokens: operand(prompt), ...batchParameters });

/**
 * Generates several texts at once (continuous batching): one pass through the weights computes the next token of all of
 * them, and a text joins or leaves between any two tokens. A prompt that begins as an earlier text did is not computed
 * again up to where they differ.
 *
 * Each text depends on its own prompt and options alone. The result may differ in the last bits from that of
 * {@link generate}, since products of several rows add up in another order.
 *
 * @param model a language model, which runs in evaluation mode without gradients
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

  /** How many texts are being generated. */
  get active(): number {
    return this.slots.filter(({ isBusy }) => isBusy).length;
  }

  /** How many texts wait for a slot. */
  get waiting(): number {
    return this.queue.length;
  }

  /** Whether another text would be refused. */
  get isFull(): boolean {
    this.dropDone();
    return this.queue.length >= this.queueLimit;
  }

  /**
   * Starts a text, or lets it wait for a slot.
   *
   * @param tokens the prompt: at least one token, and fewer than the model's context
   * @param options those of `generate`, and `logProbabilities`
   *
   * @throws {ArgumentError} for an option out of range, a prompt that is empty or too long, a token that is not in the
   * vocabulary, and `queueFull`. @throws {DisposedError} after `dispose()`.
   */
  submit(tokens: Tokens, options?: BatchOptions): TokenStream;
  submit(...values: unknown[]): TokenStream {
    const { tokens, ...options } = readSubmit(values);
    if (this.closed)
      throw new DisposedError("Batcher.submit", "disposed", "expected a batcher that is not disposed of");
    const { signal, ...settings } = settingsOf("Batcher.submit", options);
    const own = checkTokens("Batcher.submit", tokens, this.model.vocabularySize);
    this.checkLength(own.length);
    if (this.isFull) throw queueFull(this.queueLimit);
    const room = this.model.contextLength - own.length;
    const sequence = new Sequence(own, { ...settings, maxTokens: Math.min(settings.maxTokens, room) });
    const stream = new TokenStream();
    this.queue.push({ sequence, stream, signal });
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

  /** Until there is nothing left to do. */
  private async run(): Promise<void> {
    for (;;) {
      await yieldToEventLoop();
      this.dropDone();
      this.admit();
      const busy = this.slots.filter(({ isBusy }) => isBusy);
      if (busy.length === 0) return;
      const reading = busy.find(({ pending }) => pending.length > 1);
      if (reading) await this.advance([reading], Math.min(reading.pending.length, this.promptChunk));
      const ready = busy.filter(({ isBusy, pending }) => isBusy && pending.length === 1);
      if (ready.length > 0) await this.advance(ready, 1);
      else if (!reading) await Promise.race([...busy.map(({ deciding }) => deciding), patience()]);
    }
  }

  /** Whom nobody reads any more, or whose signal came, leaves. */
  private dropDone(): void {
    for (let at = this.queue.length; at-- > 0; ) if (isOver(this.queue[at]!)) this.queue.splice(at, 1);
    for (const slot of this.slots) if (slot.job && isOver(slot.job)) slot.release();
  }

  /** Who waited longest comes first, into the slot whose last text begins alike. */
  private admit(): void {
    for (;;) {
      const free = this.slots.filter(({ isBusy }) => !isBusy);
      const job = free.length > 0 ? this.queue.shift() : undefined;
      if (!job) return;
      if (job.sequence.isFull) job.stream.finish("length");
      else free.reduce((best, slot) => (slot.isBetterFor(job.sequence.prompt, best) ? slot : best)).take(job);
    }
  }

  /** Computes so many tokens of each, and chooses the next one of those that have no more tokens of a prompt. */
  private async advance(slots: readonly Slot[], tokens: number): Promise<void> {
    try {
      using logits = tidy(() => noGrad(() => inEvaluation(this.model, () => this.compute(slots, tokens))));
      const values = (await logits.data()) as unknown as Rows;
      const width = this.model.vocabularySize;
      for (const [row, slot] of slots.entries()) slot.accept(values.subarray(row * width, (row + 1) * width), tokens);
      await this.allDecided(slots);
    } catch (error) {
      for (const slot of slots) slot.fail(error);
    }
  }

  /** Forms of texts may take long to say which tokens may follow. They don't keep the others waiting. */
  private async allDecided(slots: readonly Slot[]): Promise<void> {
    if (!slots.some(({ job }) => job?.sequence.isHeld)) return;
    await Promise.race([Promise.all(slots.map(({ deciding }) => deciding)), patience()]);
  }

  private compute(slots: readonly Slot[], tokens: number): Tensor {
    const rows = slots.map(({ pending }) => pending.slice(0, tokens));
    const caches = slots.map(({ cache }) => cache);
    const cache = caches.length === 1 ? caches[0]! : new KeyValueCacheBatch(caches);
    return this.model.forward(tensor(rows, { dtype: "int32" }), { cache, lastOnly: true });
  }

  /** Ends all texts with an error, and frees the caches. */
  dispose(): void {
    this.closed = true;
    const error = new DisposedError("Batcher", "disposed", "the batcher was disposed of while the text was generated");
    for (const { stream } of this.queue.splice(0)) stream.fail(error);
    for (const slot of this.slots) slot.fail(error);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** Milliseconds that texts wait for those whose next token is not decided. Together they are computed faster. */
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
  new ArgumentError("Batcher.submit", "queueFull", `expected fewer than ${limit} waiting texts; try again later`);
