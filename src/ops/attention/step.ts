/**
 * A decoding step as one operation: a few new tokens of each sequence attend to earlier tokens, whose keys and values
 * are in rooms (preallocated rows of a cache), and to one another. The result is bitwise equal to `rope`, copies into
 * the rooms and `flashAttention`, without the overhead of separate calls; on metal, only while rooms have fewer than
 * 1,024 rows: longer ones are split into parts by their capacity. On cpu, q8_0 blocks are unpacked one tile at a time
 * rather than all at each step.
 */

import { empty } from "../../backend/allocation.ts";
import { searchedFor } from "../../backend/anomaly.ts";
import { executeInto } from "../../backend/dispatch.ts";
import { isAnyInUse } from "../../backend/overrides.ts";
import { getBackend } from "../../backend/policy.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import { flashAttentionLog } from "../../observe/observer.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { rowWidth } from "./room.ts";
import { stepCpu } from "./step.cpu.ts";
import { stepMetal, whyNoStep } from "./step.metal.ts";

export { MOST_ROOMS } from "./primitive.ts";

/**
 * Keys and values, [batch, kvHeads, rows, dim] each with contiguous rows, or uint8 [batch, kvHeads, rows, bytes] with
 * q8_0 blocks.
 */
export interface StepRoom {
  readonly keys: Tensor;
  readonly values: Tensor;
}

/** Location of a sequence in the rooms. */
export interface StepSequence {
  /** The index of the sequence's room, and of its batch in that room. */
  readonly room: number;
  readonly batch: number;
  /** The position of the first new token. */
  readonly position: number;
  /**
   * The first row that may be attended to, and the number of rows. The rows of the new tokens are included, and come
   * last.
   */
  readonly first: number;
  readonly rows: number;
}

/** Rotary embedding: the rotation of each pair of elements, in cycles per position; empty for no rotation. */
export interface StepRotation {
  readonly cycles: Float64Array;
  readonly magnitude: number;
  readonly interleaved: boolean;
}

export interface StepFormula {
  readonly scale: number;
  readonly softcap?: number | undefined;
  /** The number of tokens that a token attends to, including itself. */
  readonly window?: number | undefined;
  readonly rotation: StepRotation;
}

export interface StepAttributes extends StepFormula {
  readonly sequences: readonly StepSequence[];
  /** Returns the sequences of a replay by `compile`; undefined if the recording does not fit. */
  readonly replayed?: () => readonly StepSequence[] | undefined;
  readonly heads: number;
  readonly kvHeads: number;
}

const stepPrimitive = definePrimitive<StepAttributes>({
  name: "attentionStep",
  family: "attention",
  implementations: {
    metal: stepMetal,
    cpu: stepCpu,
    reference: { missing: "decoding steps are not fused on reference" },
  },
});

/** For more tokens per sequence, separate operations cost no more, because they pack keys. */
export const MOST_TOKENS = 4;

/**
 * Tests whether a fused step can run: not on reference, and only if no override, attention log or anomaly detection
 * observes single operations.
 */
export function hasStep(operands: readonly Tensor[]): boolean {
  if (getBackend() === "reference" || isAnyInUse() || flashAttentionLog || searchedFor.get()) return false;
  const [{ dtype, shape }] = tupleOf(operands, 1);
  if (!isFloat(dtype) || shape[1] > MOST_TOKENS) return false;
  return operands.every((operand) => !operand.requiresGrad && operand.dtype === dtype && operand.strides.at(-1) === 1);
}

/** Tests whether the backend has a fused step for these rooms and sequences. @param x a projection */
export const hasStepIn = (x: Tensor, rooms: readonly StepRoom[], sequences: readonly StepSequence[]): boolean =>
  getBackend() !== "metal" || whyNoStep(x, rooms, sequences) === undefined;

/**
 * Computes a decoding step, and writes the keys and values of the new tokens to their rooms.
 *
 * @param operands q [sequences, tokens, heads · dim], k [sequences, tokens, kvHeads · dim] and v [sequences, tokens,
 * kvHeads · valueDim]; heads may also be a separate axis, and the elements of a head are contiguous
 * @param rooms of one dtype; the rows of the new tokens are written
 * @returns [sequences, tokens, heads · valueDim]
 *
 * @throws {ArgumentError} if keys or values are not finite and the rooms hold q8_0 blocks.
 */
export function attentionStep(
  operands: readonly [q: Tensor, k: Tensor, v: Tensor],
  rooms: readonly StepRoom[],
  attributes: StepAttributes,
): Tensor {
  const [q] = operands;
  const valueDim = rowWidth(rooms[0].values);
  const out = empty([q.shape[0], q.shape[1], attributes.heads * valueDim], q.dtype, undefined, "attention");
  const changed = rooms.flatMap(({ keys, values }) => [keys, values]);
  executeInto(stepPrimitive, [...operands, ...changed], [out, ...changed], attributes); // earlier rows are read
  return out;
}
