import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { isArray } from "../../core/kinds.ts";
import { type Kind, operand, parameters } from "../../core/parameters.ts";
import { zeros } from "../../ops/creation/full.ts";
import { cat } from "../../ops/join/cat.ts";
import { narrow } from "../../ops/view/slice.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Attend, AttentionCache, KeyValueCache, type Positions, rowsFrom } from "./cache.ts";
import { type AttendStep, steppedTogether } from "./step.ts";
import type { KeysAndValues } from "./store.ts";

/** The caches of one layer, one per sequence. Only attention runs per sequence; products run for the whole batch. */
class AttentionCacheBatch extends AttentionCache {
  constructor(private readonly members: readonly AttentionCache[]) {
    super(Math.max(...members.map(({ limit }) => limit)));
  }

  override get position(): number {
    return Math.max(...this.members.map(({ position }) => position));
  }

  override get length(): number {
    return Math.max(...this.members.map(({ length }) => length));
  }

  override positionsOf(tokens: number): Positions {
    return rowsFrom(
      this.members.map((member) => member.positionIn(0)),
      tokens,
    );
  }

  override positionIn(row: number): number {
    return this.members[row].positionIn(0);
  }

  override continueAt(next: readonly number[]): void {
    for (const [row, member] of this.members.entries()) member.continueAt([next[row]]);
  }

  override attend(queries: Tensor, { keys, values }: KeysAndValues, attend: Attend): Tensor {
    this.checkBatch(queries.shape[0]);
    const rowOf = (x: Tensor, at: number) => narrow(x, 0, at, 1);
    return cat(
      this.members.map((member, at) =>
        member.attend(rowOf(queries, at), { keys: rowOf(keys, at), values: rowOf(values, at) }, attend),
      ),
      0,
    );
  }

  override stateOf(name: string): Tensor | undefined {
    const states = this.members.map((member) => member.stateOf(name));
    const known = states.find((state) => state !== undefined);
    if (!known) return undefined;
    return cat(
      states.map((state) => state ?? zeros(known.shape, { dtype: known.dtype })),
      0,
    );
  }

  override setStates(states: Readonly<Record<string, Tensor>>, count: number): void {
    for (const [row, member] of this.members.entries()) {
      const own = Object.entries(states).map(([name, state]) => [name, narrow(state, 0, row, 1)]);
      member.setStates(Object.fromEntries(own), count);
    }
  }

  override advance(count: number): void {
    for (const member of this.members) member.advance(count);
  }

  override tensors(): Tensor[] {
    return this.members.flatMap((member) => member.tensors());
  }

  override step(step: AttendStep): Tensor | null {
    this.checkBatch(step.operands[0].shape[0]);
    return steppedTogether(this.members, step);
  }

  private checkBatch(batch: number): void {
    if (batch === this.members.length) return;
    const message = `expected a batch of ${this.members.length}, one sequence per cache, got ${batch}`;
    throw new ShapeError("KeyValueCacheBatch", "wrongBatch", message);
  }

  override append(): never {
    throw new ArgumentError("KeyValueCacheBatch", "noBuffer", "append is not supported for a batch; call attend()");
  }

  override canTruncate(length: number): boolean {
    return this.members.every((member) => member.canTruncate(length));
  }

  override truncate(length: number): void {
    for (const member of this.members) member.truncate(length);
  }

  override reset(): void {
    for (const member of this.members) member.reset();
  }

  override dispose(): void {
    for (const member of this.members) member.dispose();
  }
}

const isCache = (value: unknown): value is KeyValueCache =>
  value instanceof KeyValueCache && !(value instanceof KeyValueCacheBatch);

const aliveCaches: Kind<readonly KeyValueCache[]> = {
  expected: "a list of one or more KeyValueCaches of one model, none of them twice",
  parse(value) {
    if (!isArray(value) || value.length === 0 || value.length > MOST_SEQUENCES) return undefined;
    const caches = Array.from<unknown>(value);
    if (!caches.every(isCache) || new Set(caches).size < caches.length) return undefined;
    return caches.every(({ layers }) => layers.length === caches[0].layers.length) ? caches : undefined;
  },
};
/** An upper bound, far above any batch size. */
const MOST_SEQUENCES = 65_536;

const readCaches = parameters("KeyValueCacheBatch", { caches: operand(aliveCaches) });

/**
 * Combines caches of several sequences of different lengths into the cache of one batch: row n of the batch continues
 * the sequence of cache n, at that sequence's position. Nothing is copied or padded, and a sequence can join or leave
 * between any two tokens. Keys and values are appended to the given caches. Disposing of the batch disposes of them
 * too.
 *
 * @example
 * const batch = new KeyValueCacheBatch([first, second]); // 7 and 100 tokens long
 * const logits = noGrad(() => model.forward(tokens, { cache: batch })); // int32[2, 1] → float32[2, 1, vocabulary]
 *
 * @throws {ArgumentError} for anything but a list of caches of one model.
 */
export class KeyValueCacheBatch extends KeyValueCache {
  override readonly layers: readonly AttentionCache[];
  /** @internal The cache of each row. */
  readonly caches: readonly KeyValueCache[];

  /** @param caches one per sequence; their positions may differ */
  constructor(caches: readonly KeyValueCache[]);
  constructor(...values: unknown[]) {
    const { caches } = readCaches(values);
    super(caches[0].layers.length, Math.max(...caches.map(({ limit }) => limit)));
    this.caches = caches;
    this.layers = caches[0].layers.map(
      (_, layer) => new AttentionCacheBatch(caches.map((cache) => cache.layers[layer])),
    );
  }
}
