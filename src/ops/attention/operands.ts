/** Validates a call's tensors and reshapes them to rank 4, as `problem.ts` expects. */
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { tupleOf } from "../../core/tuples.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { formatShape, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { tensor } from "../creation/tensor.ts";
import { reshape } from "../view/reshape.ts";
import { unsqueeze } from "../view/squeeze.ts";
import type { FlashAttentionOptions, SequenceBounds } from "./options.ts";
import type { Sequence } from "./problem.ts";

/** Queries, keys and values of rank 4, and whether the caller's tensors had an axis of heads. */
export interface Projections {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
  /** [batch, heads, queries, keys] */
  readonly pairs: readonly [number, number, number, number];
  readonly hasHeads: boolean;
}

/** Validates q, k and v. @throws {DTypeError} @throws {ShapeError} naming the mismatch. */
export function projectionsOf(operation: string, q: Tensor, k: Tensor, v: Tensor): Projections {
  q.checkAlive(operation);
  k.checkAlive(operation);
  v.checkAlive(operation);
  const got = () => `got q ${q.describe()}, k ${k.describe()} and v ${v.describe()}`;
  checkDTypes(operation, q.dtype, k.dtype === q.dtype && v.dtype === q.dtype, got);
  const hasHeads = q.rank === 4;
  const refuse = (code: string, expected: string): never => {
    throw new ShapeError(operation, code, `expected ${expected}, ${got()}`);
  };
  if (k.rank !== q.rank || v.rank !== q.rank || (q.rank !== 3 && q.rank !== 4))
    refuse("wrongRank", "q, k and v all to be [batch, heads, rows, dim] or [batch, rows, dim]");
  const withHeads = (x: Tensor): Tensor => (hasHeads ? x : unsqueeze(x, 1));
  const [four, keyed, valued] = [withHeads(q), withHeads(k), withHeads(v)];
  const [batch, heads, queries, dim] = tupleOf(plainList(four.shape), 4);
  const [keyBatch, kvHeads, keys, keyDim] = tupleOf(plainList(keyed.shape), 4);
  const [valueBatch, valueHeads, valueKeys] = tupleOf(plainList(valued.shape), 3);
  if (keyBatch !== batch || valueBatch !== batch) refuse("batchesDiffer", "equal batches");
  if (keyDim !== dim) refuse("dimsDiffer", "equal last axes of q and k");
  if (valueHeads !== kvHeads || valueKeys !== keys) refuse("keysDiffer", "k and v to have the same heads and rows");
  if (kvHeads === 0 ? heads !== 0 : heads % kvHeads !== 0)
    refuse("headsDiffer", `the heads of q (${heads}) to be a multiple of those of k and v (${kvHeads})`);
  if (dim === 0) refuse("emptyDim", "at least one element in the last axis of q and k");
  return { q: four, k: keyed, v: valued, pairs: [batch, heads, queries, keys], hasHeads };
}

function checkDTypes(operation: string, dtype: DType, areEqual: boolean, got: () => string): void {
  if (!areEqual)
    throw new DTypeError(
      operation,
      "dtypesDiffer",
      `expected q, k and v of one dtype, ${got()}: cast with toDType(x, dtype)`,
    );
  if (!isFloat(dtype)) throw new DTypeError(operation, "notAFloat", `expected floats, ${got()}`);
}

/**
 * Returns a mask or bias reshaped to rank 4, without expanding sizes of 1. Without an axis of heads, rank 3 means
 * [batch, queries, keys].
 *
 * @throws {DTypeError} @throws {ShapeError}
 */
export function pairOperand(
  operation: string,
  name: "mask" | "bias",
  operand: Tensor | undefined,
  dtype: DType,
  { pairs, hasHeads }: Projections,
): Tensor | undefined {
  if (operand === undefined) return undefined;
  operand.checkAlive(operation);
  const meaning = { mask: "true = attends", bias: "the dtype of q" }[name];
  if (operand.dtype !== dtype)
    throw new DTypeError(
      operation,
      "wrongDType",
      `expected ${name} to be ${dtype} (${meaning}), got ${operand.describe()}: cast with toDType(x, "${dtype}")`,
    );
  const target = hasHeads ? pairs : pairs.toSpliced(1, 1);
  const lead = target.length - operand.rank;
  const axes = `[batch, ${hasHeads ? "heads, " : ""}queries, keys]`;
  const fits = lead >= 0 && operand.shape.every((size, axis) => size === 1 || size === target[axis + lead]);
  if (!fits)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected ${name} to broadcast to ${axes}, which is ${formatShape(target)}, got ${operand.describe()}`,
    );
  const padded: Shape = [...new Array<number>(lead).fill(1), ...operand.shape];
  return reshape(operand, hasHeads ? padded : padded.toSpliced(1, 0, 1));
}

/** Validates sinks. @throws {DTypeError} @throws {ShapeError} */
export function sinksOperand(operation: string, sinks: Tensor | undefined, { q, pairs }: Projections) {
  if (sinks === undefined) return undefined;
  sinks.checkAlive(operation);
  if (sinks.dtype !== q.dtype)
    throw new DTypeError(
      operation,
      "wrongDType",
      `expected sinks to be ${q.dtype}, the dtype of q, got ${sinks.describe()}`,
    );
  if (sinks.rank !== 1 || sinks.shape[0] !== pairs[1])
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected a sink for each head of q, [${pairs[1]}], got ${sinks.describe()}`,
    );
  return sinks;
}

/**
 * Returns slopes as [1 or sequences, heads], in the dtype of log-sum-exps.
 *
 * @throws {ArgumentError} if they require a gradient. @throws {DTypeError} @throws {ShapeError}
 */
export function slopesOperand(
  operation: string,
  alibi: FlashAttentionOptions["alibi"],
  { q, pairs: [, heads] }: Projections,
  sequences: number,
): Tensor | undefined {
  if (alibi === undefined) return undefined;
  const dtype = accumulationDType(q.dtype);
  const given = alibi instanceof Tensor ? alibi : tensor([...alibi], { dtype });
  given.checkAlive(operation);
  if (!isFloat(given.dtype))
    throw new DTypeError(operation, "notAFloat", `expected alibi to be floats, got ${given.describe()}`);
  if (given.requiresGrad)
    throw new ArgumentError(
      operation,
      "noGradient",
      "alibi requires a gradient, but slopes are not differentiable; pass alibi.detach(), or pass a bias",
    );
  const isPerHead = given.rank === 1 && given.shape[0] === heads;
  const isPerSequence = given.rank === 2 && given.shape[0] === sequences && given.shape[1] === heads;
  if (!isPerHead && !isPerSequence)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected alibi with one slope for each head of q, [${heads}] or [${sequences}, ${heads}], ` +
        `got ${given.describe()}`,
    );
  return toDType(isPerHead ? reshape(given, [1, heads]) : given, dtype);
}

/** Returns the packed sequences that `cuSeqlens` describes. @throws {ArgumentError} @throws {ShapeError} */
export function packedSequences(
  operation: string,
  cuSeqlens: FlashAttentionOptions["cuSeqlens"],
  { pairs: [batch, , queries, keys] }: Projections,
): readonly Sequence[] | undefined {
  if (cuSeqlens === undefined) return undefined;
  if (batch !== 1)
    throw new ShapeError(
      operation,
      "packedBatch",
      `expected a batch of size 1 with cuSeqlens, into which all sequences are packed, got size ${batch}`,
    );
  const given = "queries" in cuSeqlens ? cuSeqlens : { queries: cuSeqlens, keys: cuSeqlens };
  const ofQueries = boundsOf(operation, "queries", given.queries, queries);
  const ofKeys = boundsOf(operation, "keys", given.keys, keys);
  if (ofQueries.length !== ofKeys.length)
    throw new ArgumentError(
      operation,
      "invalidBounds",
      `expected equally many bounds of queries and keys in cuSeqlens, got ${ofQueries.length} and ${ofKeys.length}`,
    );
  return ofQueries.slice(1).map((end, at) => ({
    queryStart: ofQueries[at],
    queries: end - ofQueries[at],
    keyStart: ofKeys[at],
    keys: ofKeys[at + 1] - ofKeys[at],
  }));
}

function boundsOf(operation: string, name: string, given: SequenceBounds, rows: number): number[] {
  const bounds = Array.from<number | bigint, number>(given instanceof Tensor ? given.dataSync() : given, Number);
  const ascends = bounds.every((bound, at) => Number.isInteger(bound) && bound >= (bounds[at - 1] ?? 0));
  if (bounds.length >= 2 && bounds[0] === 0 && bounds.at(-1) === rows && ascends) return bounds;
  throw new ArgumentError(
    operation,
    "invalidBounds",
    `expected cuSeqlens of ${name} to rise from 0 to the number of ${name}, ${rows}, got [${bounds.join(", ")}]`,
  );
}

/** Returns the operand `sequences`: the sequences' numbers as a tensor for kernels. */
export const sequenceTable = (sequences: readonly Sequence[]): Tensor =>
  tensor(
    Int32Array.from(
      sequences.flatMap(({ queryStart, queries, keyStart, keys }) => [queryStart, queries, keyStart, keys]),
    ),
    { shape: [sequences.length, 4] },
  );
