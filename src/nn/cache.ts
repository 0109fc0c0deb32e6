import { noGrad } from "../autograd/modes.ts";
import { ArgumentError, ShapeError } from "../core/errors.ts";
import { operand, parameters } from "../core/parameters.ts";
import { copy_ } from "../ops/copy/inplace.ts";
import { empty } from "../ops/creation/full.ts";
import { narrow } from "../ops/view/slice.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep, tidy } from "../tensor/tidy.ts";
import { layerCount, position, size } from "./kinds.ts";

/** Keys and values of one attention layer: [batch, heads, tokens, dim]. */
export interface KeysAndValues {
  readonly keys: Tensor;
  readonly values: Tensor;
}

/** The initial capacity in tokens. It doubles whenever it is exceeded, up to the limit. */
const INITIAL_CAPACITY = 64;
/** The axis of tokens. */
const TOKENS = 2;

/** @internal Attention of queries to keys and values, as a layer computes it. */
export type Attend = (queries: Tensor, appended: KeysAndValues) => Tensor;

/** @internal Where new tokens stand: the position of the first, or the position of each, int32 [batch, tokens]. */
export type Positions = number | Tensor<"int32">;

const truncateParameters = parameters("KeyValueCache.truncate", { length: operand(position) });
const attentionCacheParameters = parameters("AttentionCache", { limit: operand(size) });
const keyValueCacheParameters = parameters("KeyValueCache", { layers: operand(layerCount), limit: operand(size) });

/**
 * The keys and values of the tokens that one attention layer has seen, so that the next token computes only its own.
 * Each is written once. When the cache is full, the next token overwrites the oldest one: attention does not depend on
 * the order of the keys, because each key carries its position.
 *
 * It records no autograd history: use it in `noGrad`.
 */
export class AttentionCache implements Disposable {
  /** How many tokens it can hold. */
  readonly limit: number;
  private seen = 0;
  private buffers: KeysAndValues | null = null;

  /** @throws {ArgumentError} for a limit below 1. */
  constructor(limit: number);
  constructor(...values: unknown[]) {
    this.limit = attentionCacheParameters(values).limit;
  }

  /** The position of the next token: how many tokens were appended, including overwritten ones. */
  get position(): number {
    return this.seen;
  }

  /** How many tokens it holds. */
  get length(): number {
    return Math.min(this.seen, this.limit);
  }

  /**
   * Appends the keys and values of new tokens, and returns views of all keys and values that it holds.
   *
   * @throws {ShapeError} for several tokens that exceed the limit: they would overwrite keys that the others attend to.
   */
  append({ keys, values }: KeysAndValues): KeysAndValues {
    const count = keys.shape[TOKENS]!;
    this.checkFit(count);
    const buffers = this.reserve(Math.min(this.seen + count, this.limit), { keys, values });
    const start = this.seen % this.limit;
    noGrad(() => {
      copy_(narrow(buffers.keys, TOKENS, start, count), keys);
      copy_(narrow(buffers.values, TOKENS, start, count), values);
    });
    this.seen += count;
    return first(buffers, this.length);
  }

  /** @internal Where the next tokens stand. */
  positionsOf(_tokens: number): Positions {
    return this.seen;
  }

  /** @internal Appends keys and values, and attends to all that the cache then holds. */
  attend(queries: Tensor, appended: KeysAndValues, attend: Attend): Tensor {
    return attend(queries, this.append(appended));
  }

  /**
   * Forgets all tokens but the first `length`, for a text that goes on differently. The memory is kept.
   *
   * @throws {ArgumentError} for more tokens than it holds, and after it overwrote its oldest token.
   */
  truncate(length: number): void;
  truncate(...values: unknown[]): void {
    const { length } = truncateParameters(values);
    if (this.seen > this.limit || length > this.seen) {
      const got = this.seen > this.limit ? `${length}, but the first tokens are overwritten` : length;
      const expected = `expected length to be at most ${this.length}`;
      throw new ArgumentError("KeyValueCache.truncate", "tooLong", `${expected}, got ${got}`);
    }
    this.seen = length;
  }

  private checkFit(count: number): void {
    if (count <= 1 || this.seen + count <= this.limit) return;
    throw new ShapeError(
      "AttentionCache",
      "cacheFull",
      `expected at most ${Math.max(1, this.limit - this.length)} tokens, got ${count}; append one at a time, or ` +
        "reset() the cache",
    );
  }

  /** Buffers for so many tokens. Grown buffers get the contents of the old ones. */
  private reserve(length: number, like: KeysAndValues): KeysAndValues {
    const capacity = this.buffers?.keys.shape[TOKENS] ?? 0;
    if (this.buffers && length <= capacity) return this.buffers;
    const size = Math.min(Math.max(INITIAL_CAPACITY, 2 * capacity, length), this.limit);
    const next = { keys: bufferLike(like.keys, size), values: bufferLike(like.values, size) };
    const old = this.buffers;
    if (old) copyTokens(next, first(old, this.length));
    this.buffers = next;
    old?.keys.dispose();
    old?.values.dispose();
    return next;
  }

  /** Removes all tokens. The memory is kept for reuse. */
  reset(): void {
    this.seen = 0;
  }

  /** Removes all tokens and frees the memory. */
  dispose(): void {
    this.reset();
    this.buffers?.keys.dispose();
    this.buffers?.values.dispose();
    this.buffers = null;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

const bufferLike = (x: Tensor, size: number): Tensor => keep(empty(x.shape.with(TOKENS, size), { dtype: x.dtype }));

const first = ({ keys, values }: KeysAndValues, length: number): KeysAndValues => ({
  keys: narrow(keys, TOKENS, 0, length),
  values: narrow(values, TOKENS, 0, length),
});

const copyTokens = (to: KeysAndValues, from: KeysAndValues): void =>
  tidy(() =>
    noGrad(() => {
      const target = first(to, from.keys.shape[TOKENS]!);
      copy_(target.keys, from.keys);
      copy_(target.values, from.values);
    }),
  );

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

  /** @param limit how many tokens each layer can hold @throws {ArgumentError} for a number below 1. */
  constructor(layers: number, limit: number);
  constructor(...values: unknown[]) {
    const { layers, limit } = keyValueCacheParameters(values);
    this.layers = Array.from({ length: layers }, () => new AttentionCache(limit));
  }

  /** The position of the next token. */
  get position(): number {
    return this.layers[0]!.position;
  }

  /** @internal Where the next tokens stand. */
  positionsOf(tokens: number): Positions {
    return this.layers[0]!.positionsOf(tokens);
  }

  /** How many tokens it holds. */
  get length(): number {
    return this.layers[0]!.length;
  }

  /**
   * Forgets all tokens but the first `length`, so that a text which begins alike needs no computation of these.
   *
   * @throws {ArgumentError} for more tokens than it holds, and after it overwrote its oldest token.
   */
  truncate(length: number): void {
    for (const layer of this.layers) layer.truncate(length);
  }

  /** How many tokens it can hold. */
  get limit(): number {
    return this.layers[0]!.limit;
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
