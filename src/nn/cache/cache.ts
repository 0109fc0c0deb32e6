import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { choice } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { currentCapture } from "../../observe/capture.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { clone } from "../../ops/copy/copy.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { indexSelect } from "../../ops/indexing/gather.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { keep } from "../../tensor/tidy.ts";
import { layerCount, position, size, windowList } from "../layers/kinds.ts";
import { type AttendStep, type StepPlace, steppedTogether } from "./step.ts";
import { type CacheFormat, cacheFormats, type KeysAndValues, type Like, TokenStore } from "./store.ts";

/** Initial capacity in tokens. It doubles whenever it is exceeded, up to the limit. */
const INITIAL_CAPACITY = 64;
/** The axis of tokens. */
const TOKENS = 2;
/** Number of recent tokens that `truncate` can always remove, even after older ones were dropped. */
const SPARE = 64;
/** Minimum number of tokens that are appended between two drops. */
const LEAST_ROOM = 64;

/** @internal Attention of queries to cached keys and values. The last rows of both belong to the queries' tokens. */
export type Attend = (queries: Tensor, held: KeysAndValues) => Tensor;

/** @internal Positions of new tokens: the position of the first, or one for each as int32 [batch, tokens]. */
export type Positions = number | Tensor<"int32">;

/** Offsets to add to the positions of all tokens from index `from` on, one per row. */
interface Shift {
  readonly from: number;
  readonly rows: readonly number[];
}

/** Options of {@link AttentionCache}. */
export interface AttentionCacheOptions {
  /** Storage format of keys and values: see {@link CacheFormat}. Default: the dtype that they are computed in. */
  readonly format?: CacheFormat | undefined;
  /** Number of tokens that a token attends to, including itself. Default: all. */
  readonly window?: number | undefined;
}

/** Options of {@link KeyValueCache}. */
export interface KeyValueCacheOptions {
  /** Storage format of keys and values: see {@link CacheFormat}. Default: the dtype that they are computed in. */
  readonly format?: CacheFormat | undefined;
  /** Number of tokens that a token attends to, for each layer; Infinity for all. Default: all in every layer. */
  readonly windows?: readonly number[] | undefined;
}

const format = named(choice(...cacheFormats));
const truncateParameters = parameters("KeyValueCache.truncate", { length: operand(position) });
const canTruncateParameters = parameters("KeyValueCache.canTruncate", { length: operand(position) });
const attentionCacheParameters = parameters("AttentionCache", { limit: operand(size), format, window: named(size) });
const keyValueCacheParameters = parameters("KeyValueCache", {
  layers: operand(layerCount),
  limit: operand(size),
  format,
  windows: named(windowList),
});

/** @internal Returns the positions of tokens in rows that start at `firsts`: int32 [rows, tokens]. */
export const rowsFrom = (firsts: readonly number[], tokens: number): Tensor<"int32"> =>
  tensor(
    firsts.map((first) => Array.from({ length: tokens }, (_, at) => first + at)),
    { dtype: "int32" },
  );

/**
 * The keys and values of the tokens that one attention layer has processed, so that only new tokens are computed.
 *
 * Tokens beyond the limit or the window are dropped in groups. Memory use is then the window, plus 64 tokens that
 * `truncate` can remove, plus the larger of 64 tokens and an eighth of the window.
 *
 * It records no autograd history: use it in `noGrad`.
 */
export class AttentionCache implements Disposable {
  /** Maximum number of tokens that the cache holds. */
  readonly limit: number;
  readonly format: CacheFormat | undefined;
  /** Number of tokens that a token attends to, including itself. */
  readonly window: number;
  /** Whether the window is smaller than the limit. */
  private readonly slides: boolean;
  private seen = 0;
  /** The position of the first token in the store. */
  private base = 0;
  private store: TokenStore | null = null;
  /** The states of a recurrent layer, which has no keys and values. */
  private readonly states = new Map<string, Tensor>();
  /** The shifts, sorted by `from`. */
  private shifts: readonly Shift[] = [];

  /** @throws {ArgumentError} for a limit or a window below 1, and an unknown format. */
  constructor(limit: number, options?: AttentionCacheOptions);
  constructor(...values: unknown[]) {
    const { limit, format, window = Infinity } = attentionCacheParameters(values);
    this.limit = limit;
    this.format = format;
    this.slides = window < limit;
    this.window = Math.min(window, limit);
  }

  /** The position of the next token: the number of appended tokens, including dropped ones. */
  get position(): number {
    return this.seen;
  }

  /** Number of cached tokens that a later token may attend to. */
  get length(): number {
    return Math.min(this.seen, this.window);
  }

  /**
   * Appends the keys and values of new tokens. Returns all keys and values that these tokens attend to, the new ones
   * last, as views or as unpacked copies.
   *
   * @throws {ShapeError} for several tokens that exceed the limit: they would drop keys that the others attend to.
   */
  append(appended: KeysAndValues): KeysAndValues {
    const count = appended.keys.shape[TOKENS];
    currentCapture()?.unsupported("keys and values are appended to a cache without a fused step");
    this.checkFit(count);
    const store = this.reserve(count, appended);
    store.write(this.seen - this.base, appended);
    this.seen += count;
    const held = Math.min(this.seen - this.base, this.window - 1 + count);
    return store.read(this.seen - this.base - held, held);
  }

  /** @internal Sets the position of the next token in each row. An image has more tokens than positions. */
  continueAt(next: readonly number[]): void {
    if (next.every((position, row) => position === this.positionIn(row))) return;
    const rows = next.map((position) => position - this.seen);
    this.shifts = [...this.shifts.filter(({ from }) => from < this.seen), { from: this.seen, rows }];
  }

  /** @internal Returns the position of the next token in a row. */
  positionIn(row: number): number {
    const rows = this.shifts.findLast(({ from }) => from <= this.seen)?.rows ?? [];
    return this.seen + (rows[row] ?? 0);
  }

  /** @internal Returns the positions of the next tokens. */
  positionsOf(tokens: number): Positions {
    const count = this.shifts.findLast(({ from }) => from <= this.seen)?.rows.length ?? 1;
    const firsts = Array.from({ length: count }, (_, row) => this.positionIn(row));
    return firsts.every((first) => first === firsts[0]) ? firsts[0] : rowsFrom(firsts, tokens);
  }

  /** @internal Appends keys and values, and attends to everything that the new tokens may attend to. */
  attend(queries: Tensor, appended: KeysAndValues, attend: Attend): Tensor {
    const held = this.append(appended);
    const attended = attend(toDType(queries, held.keys.dtype), held);
    this.trim();
    return toDType(attended, queries.dtype);
  }

  /** @internal Computes rotations and {@link attend} as one fused operation; null if none supports the operands. */
  step(step: AttendStep): Tensor | null {
    return steppedTogether([this], step);
  }

  /** @internal The stored keys and values. */
  tensors(): Tensor[] {
    return this.store ? [this.store.keys, this.store.values] : [];
  }

  /** @internal Reserves memory for further tokens, and returns where they are to be written. */
  placeOf(count: number, like: Record<keyof KeysAndValues, Like>): StepPlace {
    this.checkFit(count);
    const { room } = this.reserve(count, like);
    const end = this.seen - this.base + count;
    const rows = Math.min(end, this.window - 1 + count);
    return { room, position: this.positionIn(0), first: end - rows, rows };
  }

  /** @internal Advances the position after tokens were written to the place that {@link placeOf} returned. */
  advance(count: number): void {
    this.seen += count;
    this.trim();
  }

  /** @internal Returns a state of a recurrent layer, [batch, …]; undefined before the first token. */
  stateOf(name: string): Tensor | undefined {
    return this.states.get(name);
  }

  /** @internal Replaces the states of a recurrent layer after `count` tokens. They record no autograd history. */
  setStates(states: Readonly<Record<string, Tensor>>, count: number): void {
    currentCapture()?.unsupported("a recurrent layer keeps a state in a cache");
    const before = [...this.states.values()];
    for (const [name, state] of Object.entries(states))
      this.states.set(
        name,
        noGrad(() => keep(clone(state))),
      );
    for (const state of before) state.dispose();
    this.seen += count;
  }

  private clearStates(): void {
    for (const state of this.states.values()) state.dispose();
    this.states.clear();
  }

  /**
   * @internal Whether the cache can be truncated to `length` tokens: everything that the next token attends to is still
   * cached. The state of a recurrent layer can't be truncated, because it summarizes all tokens.
   */
  canTruncate(length: number): boolean {
    if (this.states.size > 0) return length === this.seen || length === 0;
    return length <= this.seen && (length === this.seen || this.base <= Math.max(0, length - this.window + 1));
  }

  /**
   * Removes all tokens but the first `length`, so that another continuation can follow. The memory is kept.
   *
   * @throws {ArgumentError} for more tokens than there are, and if tokens that would be attended to were dropped.
   */
  truncate(length: number): void;
  truncate(...values: unknown[]): void {
    const { length } = truncateParameters(values);
    if (!this.canTruncate(length)) {
      const isState = this.states.size > 0;
      const least = isState ? `0 or ${this.seen}` : `at least ${this.base + this.window - 1}`;
      const expected = length > this.seen ? `at most ${this.seen}` : least;
      const dropped = isState
        ? "; a recurrent layer keeps only the state of all tokens"
        : "; earlier tokens were dropped";
      const reason = length > this.seen ? "" : dropped;
      throw new ArgumentError(
        "KeyValueCache.truncate",
        length > this.seen ? "tooLong" : "dropped",
        `expected length to be ${expected}, got ${length}${reason}`,
      );
    }
    if (length < this.seen) this.clearStates();
    this.seen = length;
    this.shifts = this.shifts.filter(({ from }) => from <= length);
  }

  /** @internal Replaces the rows of the batch: row i becomes row `rows[i]`. Beam search continues some rows twice. */
  reorder(rows: readonly number[]): void {
    this.store = this.store?.reordered(rows, this.seen - this.base) ?? null;
    const order = tensor([...rows], { dtype: "int32" });
    for (const [name, state] of this.states) {
      this.states.set(
        name,
        noGrad(() => keep(indexSelect(state, 0, order))),
      );
      state.dispose();
    }
  }

  private checkFit(count: number): void {
    if (count <= 1 || this.slides || this.seen + count <= this.limit) return;
    throw new ShapeError(
      "AttentionCache",
      "cacheFull",
      `expected at most ${Math.max(1, this.limit - this.length)} tokens, got ${count}; append one at a time, or ` +
        "reset() the cache",
    );
  }

  /** Capacity of a cache that drops tokens from time to time. */
  private get slidingCapacity(): number {
    return this.window + SPARE + Math.max(LEAST_ROOM, Math.ceil(this.window / 8));
  }

  /** Returns a store with capacity for `count` more tokens. */
  private reserve(count: number, like: Record<keyof KeysAndValues, Like>): TokenStore {
    const held = this.seen - this.base;
    const capacity = this.store?.capacity ?? 0;
    const drops = this.slides || this.seen + count > this.limit;
    const most = drops ? this.slidingCapacity : this.limit;
    if (this.store && held + count <= capacity) return this.store;
    if (held + count <= most) {
      const size = Math.min(Math.max(INITIAL_CAPACITY, 2 * capacity, held + count), most);
      this.store = this.store?.resized(size, 0, held) ?? new TokenStore(this.format, size, like);
      return this.store;
    }
    const kept = Math.min(held, this.window - 1 + SPARE);
    const size = Math.max(most, kept + count);
    this.store = this.store?.resized(size, held - kept, kept) ?? new TokenStore(this.format, size, like);
    this.base = this.seen - kept;
    return this.store;
  }

  /** After many tokens were appended at once, shrinks the store to its usual capacity. */
  private trim(): void {
    if (!this.store || !this.slides || this.store.capacity <= this.slidingCapacity) return;
    const held = this.seen - this.base;
    const kept = Math.min(held, this.window - 1 + SPARE);
    this.store = this.store.resized(this.slidingCapacity, held - kept, kept);
    this.base = this.seen - kept;
  }

  /** Removes all tokens. The memory is kept for reuse. */
  reset(): void {
    this.clearStates();
    this.seen = 0;
    this.base = 0;
    this.shifts = [];
  }

  /** Removes all tokens and frees the memory. */
  dispose(): void {
    this.reset();
    this.store?.dispose();
    this.store = null;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/**
 * The caches of all layers of a model, for one batch of sequences.
 *
 * @example
 * const cache = model.newCache();
 * const logits = noGrad(() => model.forward(prompt, { cache }));
 * const next = noGrad(() => model.forward(token, { cache })); // computes one token
 * cache.dispose();
 */
export class KeyValueCache implements Disposable {
  readonly layers: readonly AttentionCache[];

  /**
   * @param limit maximum number of tokens in each layer
   *
   * @throws {ArgumentError} for a number below 1, an unknown format, and a list of windows whose length is not the
   * number of layers.
   */
  constructor(layers: number, limit: number, options?: KeyValueCacheOptions);
  constructor(...values: unknown[]) {
    const { layers, limit, format, windows } = keyValueCacheParameters(values);
    if (windows && windows.length !== layers) {
      const message = `expected windows to be ${layers} numbers, one for each layer, got ${windows.length}`;
      throw new ArgumentError("KeyValueCache", "invalidWindows", message);
    }
    const windowOf = (layer: number) => (windows?.[layer] === Infinity ? undefined : windows?.[layer]);
    const make = (_: unknown, layer: number) => new AttentionCache(limit, { format, window: windowOf(layer) });
    this.layers = Array.from({ length: layers }, make);
  }

  /** The position of the next token. */
  get position(): number {
    return this.layers[0].position;
  }

  /** @internal Returns the positions of the next tokens. */
  positionsOf(tokens: number): Positions {
    return this.layers[0].positionsOf(tokens);
  }

  /** @internal Returns the position of the next token in a row. */
  positionIn(row: number): number {
    return this.layers[0].positionIn(row);
  }

  /** @internal Sets the position of the next token in each row. */
  continueAt(next: readonly number[]): void {
    for (const layer of this.layers) layer.continueAt(next);
  }

  /** Number of cached tokens that a later token may attend to; the maximum over the layers. */
  get length(): number {
    return this.layers.reduce((most, { length }) => Math.max(most, length), 0);
  }

  /**
   * Whether `truncate(length)` is possible. A full cache and layers with sliding windows drop tokens. In such caches,
   * only recent tokens can be removed: at least the last 64.
   */
  canTruncate(length: number): boolean;
  canTruncate(...values: unknown[]): boolean {
    const { length } = canTruncateParameters(values);
    return this.layers.every((layer) => layer.canTruncate(length));
  }

  /**
   * Removes all tokens but the first `length`, so that a text that starts with them does not compute them again.
   *
   * @throws {ArgumentError} for more tokens than there are, and if a layer dropped tokens that would be attended to.
   * Then no layer is changed.
   */
  truncate(length: number): void;
  truncate(...values: unknown[]): void {
    const { length } = truncateParameters(values);
    const reluctant = this.layers.find((layer) => !layer.canTruncate(length));
    for (const layer of reluctant ? [reluctant] : this.layers) layer.truncate(length);
  }

  /** Maximum number of tokens that the cache holds. */
  get limit(): number {
    return this.layers[0].limit;
  }

  /** @internal Replaces the rows of the batch: row i becomes row `rows[i]`. */
  reorder(rows: readonly number[]): void {
    for (const layer of this.layers) layer.reorder(rows);
  }

  /** Removes all tokens. The memory is kept for reuse. */
  reset(): void {
    for (const layer of this.layers) layer.reset();
  }

  /** Removes all tokens and frees the memory. */
  dispose(): void {
    for (const layer of this.layers) layer.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
