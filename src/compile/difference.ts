/** Compares two recordings of a function: calls are replayed only if two successive recordings were equal. */

import type { Storage } from "../tensor/storage.ts";
import { placeIn } from "./errors.ts";
import type { Entry, RecordedCall, Recording } from "./recording.ts";
import type { Tracking } from "./tracking.ts";

/** Returns how two recordings differ; undefined if they are equal except for the numbers that a replay recomputes. */
export function difference(a: Recording, b: Recording): string | undefined {
  const scalars = liveStorages(b);
  const live = new Set(b.entries.filter(({ storage }) => scalars.has(storage)));
  for (const entry of b.liveContentsOf().keys()) live.add(entry);
  for (const [at, call] of b.calls.entries()) {
    const before = a.calls[at];
    if (before?.call.ordinal !== call.call.ordinal || before.call.rows !== call.call.rows)
      return `call ${at} is ${call.name}${placeIn(call.place)}, and was ${before?.name ?? "missing"} before`;
    const why = blockDifference(before, call, changingNumbers(b, at)) ?? operandDifference(before, call, live);
    if (why !== undefined) return `${why} in ${call.name}${placeIn(call.place)}`;
  }
  if (a.calls.length > b.calls.length) return `${a.calls[b.calls.length].name} is no longer called`;
  for (const [at, entry] of b.entries.entries())
    if (!live.has(entry) && !sameBytes(entry.contents, a.entries[at]?.contents ?? null))
      return "a result that JavaScript computes changes";
  const counts = ({ steps, draws, scalars }: Recording) => [
    ...scalars.map(({ step }) => `number of step ${step}`),
    ...steps.map(({ slots }) => `step of ${slots.length}`),
    ...draws.map(({ ahead }) => `random number ${ahead}`),
  ];
  return counts(a).join() === counts(b).join() ? undefined : "the steps of optimizers or the random numbers differ";
}

/** Returns the indices of the numbers in a call's block that a replay recomputes. */
export function changingNumbers({ draws, steps, calls }: Recording, call: number): Set<number> {
  const found = new Set<number>();
  for (const { places } of draws)
    for (const place of places) if (place.call === call) for (const word of [0, 1]) found.add(place.at + word);
  for (const { rows } of steps)
    for (const each of rows.filter((row) => row.call === call))
      for (const at of rowPlaces(calls[call], each.keys).flat()) found.add(at);
  return found;
}

/** Returns the indices of named fields in each row of a block. */
export function rowPlaces({ call }: RecordedCall, keys: readonly string[]): number[][] {
  const { fields, length, operands } = call.description;
  const offsets = keys.map((key) => fields.find(({ name }) => name === key)!.offset);
  return Array.from({ length: call.rows }, (_, row) => offsets.map((at) => row * (length + operands.length) + at));
}

function blockDifference(a: RecordedCall, b: RecordedCall, except: ReadonlySet<number>): string | undefined {
  const at = b.block.findIndex((value, index) => !Object.is(value, a.block[index]) && !except.has(index));
  if (at < 0) return undefined;
  const { fields, length, operands } = b.call.description;
  const place = at % (length + operands.length);
  const name = fields.findLast(({ offset }) => offset <= place)?.name ?? "size";
  return `a number changes from call to call (${name}: ${a.block[at]}, then ${b.block[at]})`;
}

/** Returns the storages of numbers that replays recompute. */
export const liveStorages = ({ scalars }: Tracking): ReadonlySet<Storage | null> =>
  new Set(scalars.map(({ storage }) => storage));

function operandDifference(a: RecordedCall, b: RecordedCall, live: ReadonlySet<Entry>): string | undefined {
  for (const [at, entry] of b.operands.entries()) {
    const before = a.operands[at];
    if (!entry !== !before) return "an operand is sometimes omitted";
    const why = entry && before && entryDifference(before, entry, live);
    if (why) return why;
  }
  return undefined;
}

function entryDifference(a: Entry, b: Entry, live: ReadonlySet<Entry>): string | undefined {
  if (a.source !== b.source || a.index !== b.index || a.id !== b.id || a.bytes !== b.bytes)
    return "an operand comes from another place in each call";
  if (!live.has(b) && (!sameBytes(a.contents, b.contents) || !sameBytes(a.after, b.after)))
    return "a value that JavaScript computes changes from call to call";
  if (b.source === "external" && a.storage !== b.storage) return "a tensor of the surrounding code was replaced";
  return a.changes === b.changes ? undefined : "the number of changes in place differs";
}

const sameBytes = (a: Uint8Array | null, b: Uint8Array | null): boolean =>
  a === b || (a !== null && b !== null && Buffer.compare(a, b) === 0);
