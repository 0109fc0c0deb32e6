import { noGrad } from "../autograd/modes.ts";
import { ShapeError } from "../core/errors.ts";
import { copy_ } from "../ops/copy/inplace.ts";
import { empty } from "../ops/creation/full.ts";
import { narrow } from "../ops/view/slice.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep, tidy } from "../tensor/tidy.ts";
import { checkCounts } from "./checks.ts";

/** Keys and values of one attention: [batch, heads, tokens, dim]. */
export interface KeysAndValues {
  readonly keys: Tensor;
  readonly values: Tensor;
}

/** Room for so many tokens is made at first, and for twice as many whenever it is used up. */
const FIRST_ROOM = 64;
/** The axis of tokens. */
const TOKENS = 2;

/**
 * The keys and values of the tokens that one attention has seen, so that the next token computes its own alone. Each is written to its place
 * once. Where the cache is full, the next token takes the place of the oldest one: what is attended to is a set, whose order is no matter,
 * as each key carries its position.
 *
 * It holds no history: use it in `noGrad`.
 */
export class AttentionCache implements Disposable {
  /** How many tokens it can hold. */
  readonly limit: number;
  private seen = 0;
  private room: KeysAndValues | null = null;

  /** @throws {ArgumentError} for a limit below 1. */
  constructor(limit: number) {
    checkCounts("AttentionCache", { limit });
    this.limit = limit;
  }

  /** How many tokens have been seen, those among them that are forgotten: the position of the next one. */
  get position(): number {
    return this.seen;
  }

  /** How many tokens it holds. */
  get length(): number {
    return Math.min(this.seen, this.limit);
  }

  /**
   * Writes keys and values of new tokens, and returns views of all that it holds then.
   *
   * @throws {ShapeError} where several tokens come for less room: each would take from the others what they attend to.
   */
  append({ keys, values }: KeysAndValues): KeysAndValues {
    const count = keys.shape[TOKENS]!;
    this.checkFit(count);
    const room = this.roomFor(Math.min(this.seen + count, this.limit), { keys, values });
    const start = this.seen % this.limit;
    noGrad(() => {
      copy_(narrow(room.keys, TOKENS, start, count), keys);
      copy_(narrow(room.values, TOKENS, start, count), values);
    });
    this.seen += count;
    return first(room, this.length);
  }

  private checkFit(count: number): void {
    if (count <= 1 || this.seen + count <= this.limit) return;
    throw new ShapeError(
      "AttentionCache",
      "cacheFull",
      `${count} tokens came at once, and ${this.length} of ${this.limit} places are taken; begin anew with fewer tokens, or give them one at a time`,
    );
  }

  private roomFor(length: number, like: KeysAndValues): KeysAndValues {
    const has = this.room?.keys.shape[TOKENS] ?? 0;
    if (this.room && length <= has) return this.room;
    const size = Math.min(Math.max(FIRST_ROOM, 2 * has, length), this.limit);
    const next = { keys: roomLike(like.keys, size), values: roomLike(like.values, size) };
    const old = this.room;
    if (old) moveInto(next, first(old, this.length));
    this.room = next;
    old?.keys.dispose();
    old?.values.dispose();
    return next;
  }

  /** Forgets everything. The memory stays for what comes next. */
  reset(): void {
    this.seen = 0;
  }

  /** Forgets everything, and gives the memory back. */
  dispose(): void {
    this.reset();
    this.room?.keys.dispose();
    this.room?.values.dispose();
    this.room = null;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

const roomLike = (x: Tensor, size: number): Tensor => keep(empty(x.shape.with(TOKENS, size), { dtype: x.dtype }));

const first = ({ keys, values }: KeysAndValues, length: number): KeysAndValues => ({
  keys: narrow(keys, TOKENS, 0, length),
  values: narrow(values, TOKENS, 0, length),
});

const moveInto = (to: KeysAndValues, from: KeysAndValues): void =>
  tidy(() =>
    noGrad(() => {
      const place = first(to, from.keys.shape[TOKENS]!);
      copy_(place.keys, from.keys);
      copy_(place.values, from.values);
    }),
  );

/**
 * The caches of all layers of a model, for one batch of texts.
 *
 * @example
 * const cache = model.newCache();
 * const logits = noGrad(() => model.forward(prompt, { cache }));
 * const next = noGrad(() => model.forward(token, { cache })); // computes one token
 * cache.dispose();
 */
export class KeyValueCache implements Disposable {
  readonly layers: readonly AttentionCache[];

  /** @param limit how many tokens each layer holds @throws {ArgumentError} for a number below 1. */
  constructor(layers: number, limit: number) {
    checkCounts("KeyValueCache", { layers });
    this.layers = Array.from({ length: layers }, () => new AttentionCache(limit));
  }

  /** The position of the next token. */
  get position(): number {
    return this.layers[0]!.position;
  }

  /** How many tokens it holds. */
  get length(): number {
    return this.layers[0]!.length;
  }

  /** How many tokens it can hold. */
  get limit(): number {
    return this.layers[0]!.limit;
  }

  /** Forgets everything. The memory stays for what comes next. */
  reset(): void {
    for (const layer of this.layers) layer.reset();
  }

  /** Forgets everything, and gives the memory back. */
  dispose(): void {
    for (const layer of this.layers) layer.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
