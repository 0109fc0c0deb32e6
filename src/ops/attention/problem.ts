/**
 * What one call of attention computes, in the terms of every backend: arguments are validated, defaults filled in,
 * shapes of rank 4.
 *
 * Letters: B batch, H heads, G = H / kvHeads, M queries, N keys, D dim, E valueDim. For batch b, head h, query i and
 * key j:
 *
 *     s = scale · Σ_d q[b, h, i, d] · k[b, h / G, j, d]         (1) scaled product, h / G rounded down
 *     s = softcap · tanh(s / softcap)                           (2) where there is a softcap
 *     s = s + bias[b, h, i, j]                                  (3) where there is a bias
 *     s = s − slope[b, h] · |j − i − shift|                     (4) where there are slopes (ALiBi)
 *     s = −∞ where i does not attend to j                       (5) below
 *     L[i] = ln(Σ_j exp(s[i, j]) + exp(sink[h]))                (6) the sink where there is one
 *     P = exp(s − L)                                            (7) rows sum to 1, or to less with a sink
 *     Z = kept ? P · keepScale : 0                              (8) where there is dropout: of the probabilities
 *     out[b, h, i, e] = Σ_j Z[i, j] · v[b, h / G, j, e]         (9)
 *
 * **Who attends.** i attends to j where both are in the same sequence (see {@link Sequence}), −left ≤ j − i − shift ≤
 * right (see {@link Band}), mask[b, h, i, j] is true, bias[b, h, i, j] is not −∞, and the score after (4) is not −∞.
 * What i does not attend to has no influence on row i of any result, whatever its q, k, v, bias or gradient holds, NaN
 * and ∞ included; and none on its own gradients through i. A score of NaN or +∞ that is attended to makes its row NaN.
 * (What a probability of 0 that is attended to, dropped or underflowed, does with a value that is not finite is left
 * open.)
 *
 * **Empty rows.** A row that attends to nothing has out 0, and gradients 0 to and from it. Its L is −∞; with a sink, L
 * = sink.
 *
 * **L** is a natural logarithm, of scores as they are after (5), sink included, without dropout. Its dtype is float32;
 * float64 where q is. At 1e4, float32 is off by up to 5e-4, and so would be all of P: `logSumExp` is L rounded, and
 * `logSumExpLow` what the rounding lost (0 where L is −∞), so that L is their sum: P = exp((s − high) − low).
 *
 * **Dropout.** The decision for (b, h, i, j) is a function of the call's key and of these four alone, so that every
 * backend, tiling and pass draws the same: with t the number of the sequence (b, where nothing is packed) and i and j
 * counted inside the sequence,
 *
 *     words = philox(counter: (⌊j / 2⌋, ⌊i / 2⌋, h, t), key)     src/random/philox.ts; h of the H query heads
 *     word  = words[2 · (i mod 2) + (j mod 2)]                   a block is 2 × 2, so rows and columns share it alike
 *     kept  = word ≥ threshold                                   32-bit unsigned; threshold = p · 2³², rounded
 *     keepScale = 1 / (1 − p)
 *
 * **Backward**, from dO and, where L is used too, dL (else 0), for what attends; everything else is 0:
 *
 *     Δ[i]  = Σ_e dO[i, e] · out[i, e] − dL[i]                  with dropout too: Σ_j P · dP = Σ_e dO · out
 *     dP    = kept ? keepScale · Σ_e dO[i, e] · v[j, e] : 0
 *     ds    = P · (dP − Δ[i])                                   P = exp(s − L), s recomputed by (1) to (5)
 *     dv[j] = Σ_i Z[i, j] · dO[i]                               over the G heads that share it, then rounded once
 *     dbias = ds                                                summed over the axes where bias has size 1
 *     du    = scale · ds · (1 − (s₂ / softcap)²)                s₂: the score after (2) and before (3); 1 without a cap
 *     dq[i] = Σ_j du · k[j],   dk[j] = Σ_i du · q[i]            dk summed over the G heads, then rounded once
 *     dsink = Σ_b Σ_i exp(sink − L[i]) · (−Δ[i])
 *
 * All sums are at least in float32 and in an order that is the same on every run.
 */
import type { OperationCall } from "../../backend/backend.ts";
import type { PhiloxKey } from "../../random/philox.ts";
import { plainList } from "../../tensor/frozen.ts";
import { broadcastStrides } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/**
 * The operands of both passes. Those that a call has come in this order, and its attributes name them.
 *
 * | name | shape | dtype |
 * |---|---|---|
 * | q | [B, H, M, D] | float64, float32, float16, bfloat16: T |
 * | k, v | [B, H / G, N, D], [B, H / G, N, E] | T |
 * | mask | broadcasts to [B, H, M, N] | bool, true = attends |
 * | bias | broadcasts to [B, H, M, N] | T |
 * | sinks | [H] | T |
 * | slopes | [B or 1, H], B the number of sequences where they are packed | that of L |
 * | sequences | [count, 4], row-major: the numbers of {@link Sequence} | int32 |
 * | out | [B, H, M, E], of the forward | T |
 * | logSumExp, logSumExpLow | [B, H, M], of the forward | float32, float64 where T is |
 * | gradOut | [B, H, M, E] | T |
 * | gradLogSumExp | [B, H, M] | that of L |
 *
 * All but `sequences` come in any strides, negative and 0 too. The last five are backward's. Rows of empty axes (B, H,
 * M, N or E of 0) are possible; D is at least 1.
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
 * The results. The forward has the first three where its backward or its caller needs more than `out`, else that alone.
 * The backward has those that are needed, in this order: shapes and dtypes of what they are gradients of (`bias` has
 * its own shape, sizes of 1 where it is broadcast). `gradK` and `gradV` come together or not at all.
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

/** What is not a tensor. Strides, offsets and sizes are the tensors' own: {@link problemOf} reads them. */
export interface AttentionAttributes {
  /** Names the call's inputs, in their order. */
  readonly inputs: readonly InputName[];
  /** Names the call's outputs, in their order. */
  readonly outputs: readonly OutputName[];
  readonly scale: number;
  /** Above 0; undefined: none. */
  readonly softcap: number | undefined;
  /** Undefined: every query attends to every key of its sequence. */
  readonly band: Band | undefined;
  readonly alignment: Alignment;
  readonly dropout: Dropout | undefined;
  /**
   * The sequences that are packed into one batch; undefined: each batch is one. The same numbers are the operand
   * `sequences`.
   */
  readonly packed: readonly Sequence[] | undefined;
}

/**
 * Which key stands opposite a query in bands and slopes: j = i + shift. `bottom-right`: the last query opposite the
 * last key of its sequence, shift = keys − queries. `top-left`: the first opposite the first, shift = 0. See {@link
 * shiftOf}.
 */
export type Alignment = "bottom-right" | "top-left";

/**
 * Causal attention and sliding windows: −left ≤ j − i − shift ≤ right, i and j counted inside their sequence. Causal is
 * right = 0.
 */
export interface Band {
  /** A whole number of at least 0, or ∞. */
  readonly left: number;
  /** A whole number of at least 0, or ∞. */
  readonly right: number;
}

/** See (8). */
export interface Dropout {
  /** The probability to drop, in (0, 1). */
  readonly p: number;
  readonly key: PhiloxKey;
  /** Words below it drop: a whole number in [1, 2³²). */
  readonly threshold: number;
  /** 1 / (1 − p). */
  readonly keepScale: number;
}

/** The threshold and the scale of a probability to drop. */
export const dropoutOf = (p: number, key: PhiloxKey): Dropout => ({
  p,
  key,
  threshold: Math.min(Math.max(Math.round(p * 2 ** 32), 1), 2 ** 32 - 1),
  keepScale: 1 / (1 - p),
});

/** Rows of queries and of keys that belong together, within one batch. */
export interface Sequence {
  readonly queryStart: number;
  readonly queries: number;
  readonly keyStart: number;
  readonly keys: number;
}

/** What the mask of a call's dropout depends on, beside its shape. */
export type DropoutMaskAttributes = Pick<AttentionAttributes, "packed"> & { readonly dropout: Dropout };

/**
 * An operand as it lies in its tensor's storage: the element of (b, h, r, c) is at offset + b · batch + h · head + r ·
 * row + c · column, in elements. 0 repeats. Rows are queries or keys and columns their elements; bias and mask have
 * queries and keys. For the heads of k, v and their gradients h is h / G. `sinks` have strides in `head` only, `slopes`
 * in `batch` and `head`, `logSumExp` and its like up to `row`.
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
  /** Query heads that share a head of keys and values: heads / kvHeads. */
  readonly group: number;
  /** Of all packed sequences together, as `keys`. */
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
  readonly valueDim: number;
  readonly inputs: Operands<InputName, "q" | "k" | "v">;
  /** Empty where outputs are not allocated yet: in `unsupported`. */
  readonly outputs: Operands<OutputName, never>;
}

/** The problem that a call poses. */
export function problemOf(
  call: Pick<OperationCall<AttentionAttributes>, "inputs" | "attributes"> & { readonly outputs?: readonly Tensor[] },
): AttentionProblem {
  const { attributes } = call;
  const shapeOf = (name: InputName) => plainList(call.inputs[attributes.inputs.indexOf(name)]!.shape);
  const [batch, heads, queries, dim] = shapeOf("q") as [number, number, number, number];
  const [, kvHeads, keys] = shapeOf("k") as [number, number, number];
  const valueDim = shapeOf("v")[3]!;
  const pairs = [batch, heads, queries, keys];
  return {
    ...attributes,
    ...{ batch, heads, kvHeads, group: kvHeads === 0 ? 1 : heads / kvHeads, queries, keys, dim, valueDim },
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
  for (const [at, tensor] of tensors.entries()) operands[names[at]!] = operandOf(names[at]!, tensor, pairs);
  return operands;
}

/**
 * Strides on the axes (batch, head, row, column) of operands that have other axes than these four, each as large as it
 * is.
 */
const axes: Partial<Record<InputName | OutputName, (tensor: Tensor, pairs: readonly number[]) => readonly number[]>> = {
  mask: ({ shape, strides }, pairs) => broadcastStrides(shape, strides, pairs),
  bias: ({ shape, strides }, pairs) => broadcastStrides(shape, strides, pairs),
  gradBias: ({ shape, strides }, pairs) => broadcastStrides(shape, strides, pairs),
  sinks: ({ strides: [head] }) => [0, head!, 0, 0],
  gradSinks: ({ strides: [head] }) => [0, head!, 0, 0],
  slopes: ({ shape: [count], strides: [batch, head] }) => [count === 1 ? 0 : batch!, head!, 0, 0],
  sequences: ({ strides: [row, column] }) => [0, 0, row!, column!],
};

function operandOf(name: InputName | OutputName, tensor: Tensor, pairs: readonly number[]): Operand {
  const [batch = 0, head = 0, row = 0, column = 0] = plainList(axes[name]?.(tensor, pairs) ?? tensor.strides);
  return { tensor, batch, head, row, column };
}

/** A sequence in the batch: `index` is what dropout and slopes count, `batch` is where its rows lie. */
export interface PlacedSequence extends Sequence {
  readonly index: number;
  readonly batch: number;
}

/** The sequences of a problem: one a batch, or those that are packed into the only one. */
export function sequencesOf({
  packed,
  batch,
  queries,
  keys,
}: Pick<AttentionProblem, "packed" | "batch" | "queries" | "keys">): PlacedSequence[] {
  if (packed) return packed.map((sequence, index) => ({ ...sequence, index, batch: 0 }));
  return Array.from({ length: batch }, (_, index) => ({
    ...{ index, batch: index, queryStart: 0, queries, keyStart: 0, keys },
  }));
}

/** j − i of the key that stands opposite a query: see {@link Alignment}. */
export const shiftOf = ({ alignment }: Pick<AttentionProblem, "alignment">, { queries, keys }: Sequence): number =>
  alignment === "bottom-right" ? keys - queries : 0;

/**
 * The keys [first, end) of a sequence that the band lets a query attend to, both counted inside the sequence; first =
 * end where there is none. For the queries from `i` to `last` the keys of any of them, which is what a tile goes
 * through.
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
