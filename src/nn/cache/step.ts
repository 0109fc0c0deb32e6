/** Decoding steps with caches: attention of a few new tokens of several sequences, as one operation. */
import { noGrad } from "../../autograd/modes.ts";
import { tupleOf } from "../../core/tuples.ts";
import { currentCapture } from "../../observe/capture.ts";
import {
  attentionStep,
  hasStep,
  hasStepIn,
  MOST_ROOMS,
  type StepFormula,
  type StepRoom,
} from "../../ops/attention/step.ts";
import { cat } from "../../ops/join/cat.ts";
import { narrow } from "../../ops/view/slice.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { KeysAndValues, Like } from "./store.ts";

/** @internal The projections of new tokens in one layer, before rotation. */
export interface AttendStep {
  /** q [batch, tokens, heads · dim], k and v [batch, tokens, kvHeads · dim]; heads may also be a separate axis. */
  readonly operands: readonly [q: Tensor, k: Tensor, v: Tensor];
  readonly formula: StepFormula;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
}

/** @internal Where new tokens are written in a cache, and which rows they attend to. */
export interface StepPlace {
  readonly room: StepRoom;
  readonly position: number;
  readonly first: number;
  readonly rows: number;
}

/** @internal The methods of a cache that a step calls. */
export interface StepCache {
  placeOf(count: number, like: Record<keyof KeysAndValues, Like>): StepPlace;
  /** The position of the next token in a row. */
  positionIn(row: number): number;
  advance(count: number): void;
}

/**
 * @internal Computes attention of new tokens: all rows of the batch with one cache, or each row with its cache. Returns
 * null, with all positions unchanged, if no fused operation supports these operands.
 */
export function steppedTogether(caches: readonly StepCache[], step: AttendStep): Tensor | null {
  const { operands, formula, heads, kvHeads, headWidth } = step;
  const [q] = operands;
  if (!hasStep(operands)) return null;
  if (caches.length > MOST_ROOMS) return steppedInParts(caches, step);
  const [batch, count] = tupleOf(q.shape, 2);
  const roomSpec = { shape: [caches.length === 1 ? batch : 1, kvHeads, count, headWidth], dtype: q.dtype };
  const placesNow = () => caches.map((cache) => cache.placeOf(count, { keys: roomSpec, values: roomSpec }));
  const places = placesNow();
  const rooms = places.map(({ room }) => room);
  if (!rooms.every((room) => isLike(room, rooms[0]))) return null;
  const sequencesAt = (now: readonly StepPlace[]) =>
    Array.from({ length: batch }, (_, row) =>
      caches.length === 1
        ? { ...now[0], position: caches[0].positionIn(row), room: 0, batch: row }
        : { ...now[row], room: row, batch: 0 },
    );
  const sequences = sequencesAt(places);
  if (!hasStepIn(q, rooms, sequences)) return null;
  /** Returns the sequences of a replay; undefined if a cache has other memory. */
  const replayed = () => {
    const now = placesNow();
    return now.every(({ room }, at) => room === rooms[at]) ? sequencesAt(now) : undefined;
  };
  const out = noGrad(() => attentionStep(operands, rooms, { ...formula, sequences, replayed, heads, kvHeads }));
  const advance = () => {
    for (const cache of caches) cache.advance(count);
  };
  currentCapture()?.afterwards(advance);
  advance();
  return out;
}

const isLike = (room: StepRoom, first = room): boolean => room.keys.dtype === first.keys.dtype;

function steppedInParts(caches: readonly StepCache[], step: AttendStep): Tensor | null {
  const parts: Tensor[] = [];
  for (let first = 0; first < caches.length; first += MOST_ROOMS) {
    const room = caches.slice(first, first + MOST_ROOMS);
    const [q, k, v] = tupleOf(
      step.operands.map((x) => narrow(x, 0, first, room.length)),
      3,
    );
    const part = steppedTogether(room, { ...step, operands: [q, k, v] });
    if (!part) return null;
    parts.push(part);
  }
  return cat(parts, 0);
}
