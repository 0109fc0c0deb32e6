/** Recomputes cached keys when a text's length changes how its tokens are rotated (LongRoPE). */
import { noGrad } from "../../../autograd/modes.ts";
import { ArgumentError } from "../../../core/errors.ts";
import { tupleOf } from "../../../core/tuples.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import { KeyValueCacheBatch } from "../../cache/batch.ts";
import type { KeyValueCache } from "../../cache/cache.ts";

/** Computes tokens [batch, tokens] with an empty cache, rotated as in a text of length `length`. */
export type Recompute = (
  tokens: Tensor,
  inputs: { readonly cache: KeyValueCache; readonly padding?: readonly number[] | undefined; readonly length: number },
) => void;

/** The texts in a cache, and whether their keys were rotated by the long factors. */
interface Kept {
  /** The tokens of each row; more than the cache's position if the cache was truncated since. */
  readonly rows: readonly number[][];
  isLong: boolean;
}

/** The inputs of a forward pass with a cache. */
export interface Continuation {
  /** [batch, count] */
  readonly tokens: Tensor;
  readonly cache: KeyValueCache;
  /** Number of padding tokens at the start of each row. */
  readonly padding?: readonly number[] | undefined;
}

/**
 * Tracks the texts in the caches of a model with LongRoPE. When a text crosses the original context in either
 * direction, its tokens are rotated by the other factors. That changes the outputs of all layers, so rotating the
 * cached keys again is not enough: all tokens are computed again, as in Hugging Face's
 * `Phi3ForCausalLM.prepare_inputs_for_generation`.
 */
export class LongTexts {
  readonly #kept = new WeakMap<KeyValueCache, Kept>();

  /** @param original the length up to which the short factors apply */
  constructor(
    private readonly original: number,
    private readonly recompute: Recompute,
  ) {}

  /**
   * Must be called before tokens are appended. Recomputes the cache if the longer text needs other rotation factors.
   */
  prepare({ tokens, cache, padding }: Continuation): void {
    const [batch, count] = tupleOf(tokens.shape, 2);
    const caches = cachesOf(cache);
    const values = Array.from(
      noGrad(() => tokens.dataSync()),
      Number,
    );
    const rowAt = (row: number) => values.slice(row * count, (row + 1) * count);
    for (const [at, cache] of caches.entries()) {
      const added = caches.length > 1 ? [rowAt(at)] : Array.from({ length: batch }, (_, row) => rowAt(row));
      this.append(cache, added, padding);
    }
  }

  private append(cache: KeyValueCache, added: readonly number[][], padding?: readonly number[]): void {
    const { position } = cache;
    const kept = this.keptOf(cache, added.length);
    for (const row of kept.rows) row.length = position;
    const length = position + added[0].length - leastOf(padding);
    const isLong = length > this.original;
    if (position > 0 && isLong !== kept.isLong) {
      cache.reset();
      const before = tensor(kept.rows as number[][], { dtype: "int32" });
      tidy(() => noGrad(() => this.recompute(before, { cache, padding, length })));
    }
    kept.isLong = isLong;
    for (const [at, row] of kept.rows.entries()) for (const token of added[at]) row.push(token);
  }

  private keptOf(cache: KeyValueCache, batch: number): Kept {
    const found = this.#kept.get(cache);
    if (cache.position > 0) {
      if (found?.rows.length === batch) return found;
      const message = `expected a cache of ${batch} texts that this model computed from their first token`;
      throw new ArgumentError("Decoder", "unknownTexts", message);
    }
    const fresh: Kept = { rows: Array.from({ length: batch }, (): number[] => []), isLong: false };
    this.#kept.set(cache, fresh);
    return fresh;
  }
}

/** The longest text of a batch has the least padding. */
export const leastOf = (padding: readonly number[] = [0]): number => Math.min(...padding);

const cachesOf = (cache: KeyValueCache): readonly KeyValueCache[] =>
  cache instanceof KeyValueCacheBatch ? cache.caches : [cache];
