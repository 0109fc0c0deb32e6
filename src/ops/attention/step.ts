/**
 * A step of decoding as one operation: a few new tokens of each sequence attend to those before them, whose keys and
 * values are in rooms, and to one another. It is what `rope`, copies into the rooms and `flashAttention` compute one
 * after the other, bit by bit, without what each of these calls costs. Blocks of q8_0 are unpacked a tile at a time,
 * not all of them at each step.
 */
import { searchedFor } from "../../backend/anomaly.ts";
import { empty, executeInto } from "../../backend/dispatch.ts";
import { isAnyInUse } from "../../backend/overrides.ts";
import { getBackend } from "../../backend/policy.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { flashAttentionLog } from "../../observe/observer.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { rowWidth } from "./room.ts";
import { stepCpu } from "./step.cpu.ts";

export { MOST_ROOMS } from "./primitive.ts";

/**
 * Rows of keys and of values, [batch, kvHeads, rows, dim] each, elements of a row adjacent; or uint8 [batch, kvHeads,
 * rows, bytes]: blocks of q8_0.
 */
export interface StepRoom {
  readonly keys: Tensor;
  readonly values: Tensor;
}

/** Where a sequence lies. */
export interface StepSequence {
  /** The number of its room, and of its batch in it. */
  readonly room: number;
  readonly batch: number;
  /** The position of the first new token. */
  readonly position: number;
  /** The first row that may be attended to, and how many there are with the new tokens', which are the last. */
  readonly first: number;
  readonly rows: number;
}

/** How pairs of queries and keys rotate, in cycles a position; none: not at all. */
export interface StepRotation {
  readonly cycles: Float64Array;
  readonly magnitude: number;
  readonly interleaved: boolean;
}

export interface StepFormula {
  readonly scale: number;
  readonly softcap?: number | undefined;
  /** How many tokens a token attends to, itself included. */
  readonly window?: number | undefined;
  readonly rotation: StepRotation;
}

export interface StepAttributes extends StepFormula {
  readonly sequences: readonly StepSequence[];
  readonly heads: number;
  readonly kvHeads: number;
}

const onlyOnCpu = (backend: string) => ({ missing: `a step of decoding is several operations on ${backend}` });

const stepPrimitive = definePrimitive<StepAttributes>({
  name: "attentionStep",
  family: "attention",
  implementations: { metal: onlyOnCpu("metal"), cpu: stepCpu, reference: onlyOnCpu("reference") },
});

/** For more tokens of a sequence keys are packed: several operations cost no more then. */
export const MOST_TOKENS = 4;

/** Whether there is a step for these: on cpu, where nobody replaces, logs or searches single operations. */
export function hasStep(operands: readonly Tensor[]): boolean {
  if (getBackend() !== "cpu" || isAnyInUse() || flashAttentionLog || searchedFor.get()) return false;
  const [{ dtype, shape }] = operands as [Tensor];
  if (!isFloat(dtype) || shape[1]! > MOST_TOKENS) return false;
  return operands.every((own) => !own.requiresGrad && own.dtype === dtype && own.strides.at(-1) === 1);
}

/**
 * @param operands q [sequences, tokens, heads · dim], k [sequences, tokens, kvHeads · dim] and v [sequences, tokens,
 * kvHeads · valueDim]; heads may be an axis of their own, and elements of a head are adjacent
 * @param rooms of one dtype; rows of the new tokens are written
 * @returns [sequences, tokens, heads · valueDim]
 *
 * @throws {ArgumentError} for keys and values that are not finite, in rooms of blocks.
 */
export function attentionStep(
  operands: readonly [q: Tensor, k: Tensor, v: Tensor],
  rooms: readonly StepRoom[],
  attributes: StepAttributes,
): Tensor {
  const [q] = operands;
  const valueDim = rowWidth(rooms[0]!.values);
  const out = empty([q.shape[0]!, q.shape[1]!, attributes.heads * valueDim], q.dtype, undefined, "attention");
  const changed = rooms.flatMap(({ keys, values }) => [keys, values]);
  executeInto(stepPrimitive, operands, [out, ...changed], attributes);
  return out;
}
