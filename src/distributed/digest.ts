/**
 * Records that ranks compare before each call. If they differ, all ranks throw an error instead of waiting for a call
 * that never comes.
 */
import { DistributedError } from "./errors.ts";

/** Size of a record in bytes: a hash of the description, then the start of its text. */
export const RECORD_BYTES = 160;
const HASH_BYTES = 8;

/** Returns the record of a call. */
export function recordOf(description: string): Uint8Array<ArrayBuffer> {
  const record = new Uint8Array(new ArrayBuffer(RECORD_BYTES));
  const text = new TextEncoder().encode(description);
  new DataView(record.buffer).setBigUint64(0, Bun.hash.xxHash3(text), true);
  record.set(text.subarray(0, RECORD_BYTES - HASH_BYTES), HASH_BYTES);
  return record;
}

/** Returns the description in a record, or its start. */
export const textOf = (record: Uint8Array): string =>
  new TextDecoder().decode(record.subarray(HASH_BYTES)).replace(/\0.*$/s, "");

/** Checks that all records are equal. @throws {DistributedError} `mismatch`, with the same message on every rank */
export function checkRecords(operation: string, records: Uint8Array): void {
  const each = Array.from({ length: records.length / RECORD_BYTES }, (_, rank) =>
    records.subarray(rank * RECORD_BYTES, (rank + 1) * RECORD_BYTES),
  );
  const ranksBy = new Map<string, number[]>();
  for (const [rank, record] of each.entries()) {
    const key = Buffer.from(record).toString("latin1");
    ranksBy.set(key, [...(ranksBy.get(key) ?? []), rank]);
  }
  if (ranksBy.size === 1) return;
  const groups = [...ranksBy.values()].sort((a, b) => b.length - a.length);
  const described = groups.map((ranks) => `${textOf(each[ranks[0]])} on ${ranksText(ranks)}`);
  throw new DistributedError(
    operation,
    "mismatch",
    `expected the same call on every rank, got ${described.join(", and ")}`,
    groups.slice(1).flat(),
  );
}

/** Formats ranks: `rank 3`, `ranks 0, 1, 2`; only the first ones if there are many. */
export function ranksText(ranks: readonly number[]): string {
  const shown = ranks.slice(0, 8).join(", ") + (ranks.length > 8 ? `, … (${ranks.length})` : "");
  return `${ranks.length === 1 ? "rank" : "ranks"} ${shown}`;
}
