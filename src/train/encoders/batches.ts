/** Batches of records in an order that depends on the seed. */
import { DataError } from "../../core/errors.ts";
import type { DataPosition } from "../../data/windows.ts";
import { permutationOf, permuted } from "../../random/permutation.ts";
import { callKey } from "../../random/philox.ts";

/** Returns the texts of a record that no other record of its batch may have. */
export type Keys<T> = (record: T) => readonly string[];

/**
 * Divides records into batches of `size`. In a batch, no two records share a text, because with in-batch negatives, a
 * text that belongs to two anchors would count as wrong for each of them. A record that shares a text with its batch is
 * moved to the next batch with room. Batches may be smaller.
 */
export function apart<T>(records: readonly T[], size: number, keysOf: Keys<T>): T[][] {
  const batches: { readonly records: T[]; readonly texts: Set<string> }[] = [];
  let firstOpen = 0;
  for (const record of records) {
    const keys = keysOf(record);
    let at = firstOpen;
    while (
      at < batches.length &&
      !(batches[at].records.length < size && keys.every((key) => !batches[at].texts.has(key)))
    )
      at++;
    batches[at] ??= { records: [], texts: new Set() };
    batches[at].records.push(record);
    for (const key of keys) batches[at].texts.add(key);
    while (firstOpen < batches.length && batches[firstOpen].records.length >= size) firstOpen++;
  }
  return batches.map(({ records }) => records);
}

/** An endless sequence of batches. Each epoch contains each record at most once; smaller batches are left out. */
export class EpochBatches<T> {
  private epoch = 0;
  private index = 0;
  private batches: readonly (readonly T[])[];

  /** @param records at least one @param fingerprint a hash of the records and of how they are split */
  constructor(
    private readonly records: readonly T[],
    private readonly size: number,
    private readonly keysOf: Keys<T>,
    private readonly seed: bigint,
    private readonly fingerprint: string,
  ) {
    this.batches = this.batchesOf(0);
  }

  next(): readonly T[] {
    if (this.index >= this.batches.length) this.goTo(this.epoch + 1, 0);
    return this.batches[this.index++];
  }

  getState(): DataPosition {
    return { epoch: this.epoch, index: this.index, seed: this.seed, fingerprint: this.fingerprint };
  }

  /** @throws {DataError} `otherData` */
  setState({ epoch, index, seed, fingerprint }: DataPosition): void {
    if (seed !== this.seed || fingerprint !== this.fingerprint)
      throw new DataError(
        "train",
        "otherData",
        "expected the records with which the run started, got others; pass the same files, batch, held-out fraction " +
          "and seed, or start over",
      );
    this.goTo(epoch, index);
  }

  private goTo(epoch: number, index: number): void {
    if (epoch !== this.epoch) this.batches = this.batchesOf(epoch);
    this.epoch = epoch;
    this.index = index;
  }

  private batchesOf(epoch: number): T[][] {
    const { records, size, seed } = this;
    const order = permutationOf(records.length, callKey(seed, BigInt(epoch)));
    const shuffled = records.map((_, at) => records[permuted(order, records.length, at)]!);
    const all = apart(shuffled, size, this.keysOf);
    const largest = Math.max(...all.map((batch) => batch.length));
    return all.filter((batch) => batch.length === largest);
  }
}

/** Records to train on, and held-out ones. */
export interface SplitRecords<T> {
  readonly train: readonly T[];
  readonly heldOut: readonly T[];
  readonly fingerprint: string;
}

/** Holds out the records with the lowest hashes, independent of their order. Equal records stay together. */
export function splitRecords<T>(records: readonly T[], fraction: number): SplitRecords<T> {
  const hashed = records.map((record) => ({ record, hash: BigInt(Bun.hash(JSON.stringify(record))) }));
  const distinct = [...new Set(hashed.map(({ hash }) => hash))].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const count = fraction > 0 && distinct.length > 1 ? Math.max(1, Math.floor(distinct.length * fraction)) : 0;
  const held = new Set(distinct.slice(0, count));
  const of = (isHeld: boolean) => hashed.filter(({ hash }) => held.has(hash) === isHeld).map(({ record }) => record);
  const fingerprint = new Bun.CryptoHasher("sha256");
  for (const { hash } of hashed) fingerprint.update(`${hash} ${held.has(hash)}\n`);
  return { train: of(false), heldOut: of(true), fingerprint: fingerprint.digest("hex").slice(0, 16) };
}
