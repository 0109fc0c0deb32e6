/**
 * Defines what one attention call computes on every backend. Arguments are validated, defaults are filled in and
 * tensors have rank 4.
 *
 * Letters: B batch, H heads, G = H / kvHeads, M queries, N keys, D dim, E valueDim. For batch b, head h, query i and
 * key j:
 *
 *     s = scale · Σ_d q[b, h, i, d] · k[b, h / G, j, d]         (1) scaled product, h / G rounded down
 *     s = softcap · tanh(s / softcap)                           (2) with a softcap
 *     s = s + bias[b, h, i, j]                                  (3) with a bias
 *     s = s − slope[b, h] · |j − i − shift|                     (4) with slopes (ALiBi)
 *     s = −∞ if i does not attend to j                          (5) see below
 *     L[i] = ln(Σ_j exp(s[i, j]) + exp(sink[h]))                (6) the second term with a sink only
 *     P = exp(s − L)                                            (7) rows sum to 1, or to less than 1 with a sink
 *     Z = kept ? P · keepScale : 0                              (8) with dropout, which acts on probabilities
 *     out[b, h, i, e] = Σ_j Z[i, j] · v[b, h / G, j, e]         (9)
 *
 * **Attended pairs.** i attends to j if both are in the same sequence (see {@link Sequence}), −left ≤ j − i − shift ≤
 * right (see {@link Band}), mask[b, h, i, j] is true, bias[b, h, i, j] is not −∞, and the score after (4) is not −∞. A
 * pair that is not attended does not affect row i of any result, even if its q, k, v, bias or gradient is NaN or ∞. It
 * contributes nothing to the gradients of k[j] and v[j] either. An attended score of NaN or +∞ makes its row NaN. The
 * result is unspecified if an attended pair has probability 0 (dropped or underflowed) and a value that is not finite.
 *
 * **Empty rows.** A row that attends to nothing has out 0, and its gradients are 0. Its L is −∞, or `sink` with a sink.
 *
 * **L** is the natural logarithm of the sum of exponentials of the scores after (5), including the sink, before
 * dropout. Its dtype is float32, or float64 if q is float64. Near 1e4, float32 is off by up to 5e-4, which would give P
 * the same relative error. L is therefore stored as a sum of two numbers: `logSumExp` is L rounded, and `logSumExpLow`
 * is the rounding error (0 if L is −∞). P = exp((s − high) − low).
 *
 * **Dropout.** The decision for (b, h, i, j) depends only on the call's key and these four indices, so every backend,
 * tiling and pass draws the same mask. t is the sequence's index (b if nothing is packed); i and j are counted within
 * the sequence:
 *
 *     words = philox(counter: (⌊j / 2⌋, ⌊i / 2⌋, h, t), key)     src/random/philox.ts; h: query head
 *     word  = words[2 · (i mod 2) + (j mod 2)]                   one block of words covers 2 × 2 pairs
 *     kept  = word ≥ threshold                                   32-bit unsigned; threshold = p · 2³², rounded
 *     keepScale = 1 / (1 − p)
 *
 * **Backward**, from dO and, if L is used, dL (else 0), for attended pairs; all others give 0:
 *
 *     Δ[i]  = Σ_e dO[i, e] · out[i, e] − dL[i]                  with dropout too: Σ_j P · dP = Σ_e dO · out
 *     dP    = kept ? keepScale · Σ_e dO[i, e] · v[j, e] : 0
 *     ds    = P · (dP − Δ[i])                                   P = exp(s − L), s recomputed by (1) to (5)
 *     dv[j] = Σ_i Z[i, j] · dO[i]                               summed over the G heads, then rounded once
 *     dbias = ds                                                summed over the axes on which bias has size 1
 *     du    = scale · ds · (1 − (s₂ / softcap)²)                s₂: the score after (2); factor 1 without a cap
 *     dq[i] = Σ_j du · k[j],   dk[j] = Σ_i du · q[i]            dk summed over the G heads, then rounded once
 *     dsink = Σ_b Σ_i exp(sink − L[i]) · (−Δ[i])
 *
 * All sums use at least float32 and run in the same order every time.
 */
import type { OperationCall } from "../../backend/backend.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { PhiloxKey } from "../../random/philox.ts";
import { plainList } from "../../tensor/frozen.ts";
import { broadcastStrides } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/**
 * Names of the operands of both passes. A call's operands come in this order, and its attributes list their names.
 *
 * | name | shape | dtype |
 * |---|---|---|
 * | q | [B, H, M, D] | float64, float32, float16, bfloat16: T |
 * | k, v | [B, H / G, N, D], [B, H / G, N, E] | T |
 * | mask | broadcasts to [B, H, M, N] | bool, true = attends |
 * | bias | broadcasts to [B, H, M, N] | T |
 * | sinks | [H] | T |
 * | slopes | [B or 1, H]; with packing, B is the number of sequences | L's |
 * | sequences | [count, 4], row-major: the fields of each {@link Sequence} | int32 |
 * | out | [B, H, M, E], from the forward | T |
 * | logSumExp, logSumExpLow | [B, H, M], from the forward | float32; float64 if T is float64 |
 * | gradOut | [B, H, M, E] | T |
 * | gradLogSumExp | [B, H, M] | L's |
 *
 * All but `sequences` may have any strides, including negative ones and 0. The last five belong to the backward pass.
 * B, H, M, N and E may be 0; D is at least 1.
 */
export const inputNames = [
  "q",
  "k",
  "v",
  "mask",
  "bias",
  "sinks",
  "slopes",
  "sequences",
  "out",
  "logSumExp",
  "logSumExpLow",
  "gradOut",
  "gradLogSumExp",
] as const;
export type InputName = (typeof inputNames)[number];

/**
 * Names of the results. The forward pass returns the first three if the backward pass or the caller needs more than
 * `out`, else only `out`. The backward pass returns the gradients that are needed, in this order. Each gradient has the
 * shape and dtype of its operand: `gradBias` keeps the sizes of 1 along which the bias is broadcast. `gradK` and
 * `gradV` are returned together or not at all.
 */
export const outputNames = [
  "out",
  "logSumExp",
  "logSumExpLow",
  "gradQ",
  "gradK",
  "gradV",
  "gradBias",
  "gradSinks",
] as const;
export type OutputName = (typeof outputNames)[number];

/** A call's arguments that are not tensors. {@link problemOf} reads strides, offsets and sizes from the tensors. */
export interface AttentionAttributes {
  /** Names of the call's inputs, in order. */
  readonly inputs: readonly InputName[];
  /** Names of the call's outputs, in order. */
  readonly outputs: readonly OutputName[];
  readonly scale: number;
  /** Above 0; undefined for no softcap. */
  readonly softcap: number | undefined;
  /** Undefined: every query attends to every key of its sequence. */
  readonly band: Band | undefined;
  readonly alignment: Alignment;
  readonly dropout: Dropout | undefined;
  /**
   * The sequences that are packed into one batch; undefined: each batch is one sequence. The operand `sequences` holds
   * the same numbers.
   */
  readonly packed: readonly Sequence[] | undefined;
}

/**
 * Which key a query is aligned with in bands and slopes: j = i + shift. `bottom-right` aligns the last query with the
 * last key of its sequence: shift = keys − queries. `top-left` aligns the first with the first: shift = 0. See {@link
 * shiftOf}.
 */
export type Alignment = "bottom-right" | "top-left";

/**
 * Causal attention and sliding windows: −left ≤ j − i − shift ≤ right, with i and j counted within their sequence.
 * Causal attention has right = 0.
 */
export interface Band {
  /** An integer of at least 0, or ∞. */
  readonly left: number;
  /** An integer of at least 0, or ∞. */
  readonly right: number;
}

/** Dropout of probabilities: formula (8) above. */
export interface Dropout {
  /** The probability to drop, in (0, 1). */
  readonly p: number;
  readonly key: PhiloxKey;
  /** Pairs whose random word is below this integer in [1, 2³²) are dropped. */
  readonly threshold: number;
  /** 1 / (1 − p). */
  readonly keepScale: number;
}

/** Returns the threshold and the scale for a dropout probability. */
export const dropoutOf = (p: number, key: PhiloxKey): Dropout => ({
  p,
  key,
  threshold: Math.min(Math.max(Math.round(p * 2 ** 32), 1), 2 ** 32 - 1),
  keepScale: 1 / (1 - p),
});

/** Rows of queries and keys of one sequence within a batch. */
export interface Sequence {
  readonly queryStart: number;
  readonly queries: number;
  readonly keyStart: number;
  readonly keys: number;
}

/** Attributes, besides the shape, that determine a call's dropout mask. */
export type DropoutMaskAttributes = Pick<AttentionAttributes, "packed"> & { readonly dropout: Dropout };

/**
 * An operand and its strides: the element (b, h, r, c) is at offset + b · batch + h · head + r · row + c · column, in
 * elements. A stride of 0 repeats. Rows are queries or keys and columns their elements; for bias and mask, rows are
 * queries and columns are keys. For k, v and their gradients, h counts key and value heads. `sinks` has a stride in
 * `head` only, `slopes` in `batch` and `head`, `logSumExp` and similar operands in `batch`, `head` and `row`.
 */
export interface Operand {
  readonly tensor: Tensor;
  readonly batch: number;
  readonly head: number;
  readonly row: number;
  readonly column: number;
}

type Operands<Names extends string, Always extends Names> = Readonly<
  Record<Always, Operand> & Partial<Record<Exclude<Names, Always>, Operand | undefined>>
>;

/** A call's sizes, and its operands by name. */
export interface AttentionProblem extends Omit<AttentionAttributes, "inputs" | "outputs"> {
  readonly batch: number;
  readonly heads: number;
  readonly kvHeads: number;
  /** Number of query heads that share a head of keys and values: heads / kvHeads. */
  readonly group: number;
  /** Total over all packed sequences, as is `keys`. */
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
  readonly valueDim: number;
  readonly inputs: Operands<InputName, "q" | "k" | "v">;
  /** The outputs; empty if they are not allocated yet, as in `unsupported`. */
  readonly outputs: Operands<OutputName, never>;
}

/** Returns a call's sizes and operands. */
export function problemOf(
  call: Pick<OperationCall<AttentionAttributes>, "inputs" | "attributes"> & { readonly outputs?: readonly Tensor[] },
): AttentionProblem {
  const { attributes } = call;
  const shapeOf = (name: InputName) => plainList(call.inputs[attributes.inputs.indexOf(name)].shape);
  const [batch, heads, queries, dim] = tupleOf(shapeOf("q"), 4);
  const [, kvHeads, keys] = tupleOf(shapeOf("k"), 3);
  const valueDim = shapeOf("v")[3];
  const pairs = [batch, heads, queries, keys];
  return {
    ...attributes,
    batch,
    heads,
    kvHeads,
    group: kvHeads === 0 ? 1 : heads / kvHeads,
    queries,
    keys,
    dim,
    valueDim,
    inputs: operandsOf(attributes.inputs, call.inputs, pairs) as AttentionProblem["inputs"],
    outputs: operandsOf(attributes.outputs, call.outputs ?? [], pairs),
  };
}

function operandsOf(
  names: readonly (InputName | OutputName)[],
  tensors: readonly Tensor[],
  pairs: readonly number[],
): Partial<Record<InputName | OutputName, Operand>> {
  const operands: Partial<Record<InputName | OutputName, Operand>> = {};
  for (const [at, tensor] of tensors.entries()) operands[names[at]] = operandOf(names[at], tensor, pairs);
  return operands;
}

/** Returns the strides on the axes (batch, head, row, column) for operands whose axes are not exactly these four. */
const axes: Partial<Record<InputName | OutputName, (tensor: Tensor, pairs: readonly number[]) => readonly number[]>> = {
  mask: ({ shape, strides }, pairs) => broadcastStrides(shape, strides, pairs),
  bias: ({ shape, strides }, pairs) => broadcastStrides(shape, strides, pairs),
  gradBias: ({ shape, strides }, pairs) => broadcastStrides(shape, strides, pairs),
  sinks: ({ strides: [head] }) => [0, head, 0, 0],
  gradSinks: ({ strides: [head] }) => [0, head, 0, 0],
  slopes: ({ shape: [count], strides: [batch, head] }) => [count === 1 ? 0 : batch, head, 0, 0],
  sequences: ({ strides: [row, column] }) => [0, 0, row, column],
};

function operandOf(name: InputName | OutputName, tensor: Tensor, pairs: readonly number[]): Operand {
  const [batch = 0, head = 0, row = 0, column = 0] = plainList(axes[name]?.(tensor, pairs) ?? tensor.strides);
  return { tensor, batch, head, row, column };
}

/** A sequence in the batch: dropout and slopes use `index`; `batch` locates its rows. */
export interface PlacedSequence extends Sequence {
  readonly index: number;
  readonly batch: number;
}

/** Returns the sequences of a problem: one per batch, or those packed into a batch of 1. */
export function sequencesOf({
  packed,
  batch,
  queries,
  keys,
}: Pick<AttentionProblem, "packed" | "batch" | "queries" | "keys">): PlacedSequence[] {
  if (packed) return packed.map((sequence, index) => ({ ...sequence, index, batch: 0 }));
  return Array.from({ length: batch }, (_, index) => ({
    index,
    batch: index,
    queryStart: 0,
    queries,
    keyStart: 0,
    keys,
  }));
}

/** Returns j − i for the key that a query is aligned with: see {@link Alignment}. */
export const shiftOf = ({ alignment }: Pick<AttentionProblem, "alignment">, { queries, keys }: Sequence): number =>
  alignment === "bottom-right" ? keys - queries : 0;

/**
 * Returns the keys [first, end) that the band lets query i attend to, counted within the sequence; first = end if there
 * are none. With `last`, returns the range that covers the keys of all queries from `i` to `last`, which a tile
 * iterates over.
 */
export function keysInBand(
  problem: Pick<AttentionProblem, "alignment" | "band">,
  sequence: Sequence,
  i: number,
  last = i,
): { readonly first: number; readonly end: number } {
  const { left = Infinity, right = Infinity } = problem.band ?? {};
  const shift = shiftOf(problem, sequence);
  const first = Math.min(Math.max(i + shift - left, 0), sequence.keys);
  const end = Math.min(Math.max(last + shift + right + 1, first), sequence.keys);
  return { first, end };
}
