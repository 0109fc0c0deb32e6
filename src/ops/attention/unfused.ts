/**
 * Attention composed of other operations: the formulas of `problem.ts` applied to all scores at once. Memory is
 * quadratic in the sequence length. Differentiable to any order; float16 and bfloat16 compute in float32.
 */
import { tupleOf } from "../../core/tuples.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { tensor } from "../creation/tensor.ts";
import { abs, add, mul, sub } from "../elementwise/arithmetic.ts";
import { eq, ge, le, ne } from "../elementwise/comparison.ts";
import { tanh } from "../elementwise/hyperbolic.ts";
import { logicalAnd, logicalNot } from "../elementwise/logic.ts";
import { where } from "../elementwise/where.ts";
import { indexSelect } from "../indexing/gather.ts";
import { cat } from "../join/cat.ts";
import { matmul } from "../matmul/matmul.ts";
import { any } from "../reduction/logic.ts";
import { logsumexp } from "../reduction/logsumexp.ts";
import { softmax } from "../softmax/softmax.ts";
import { expand } from "../view/expand.ts";
import { permute, transpose } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { slice } from "../view/slice.ts";
import { squeeze, unsqueeze } from "../view/squeeze.ts";
import { dropoutMask } from "./dropout_mask.ts";
import { pairProducts, weightedSums } from "./masked_products.ts";
import {
  type AttentionAttributes,
  type AttentionProblem,
  type InputName,
  type PlacedSequence,
  problemOf,
  sequencesOf,
  shiftOf,
} from "./problem.ts";

/** Results of attention. */
export interface Attended {
  /** [B, H, M, E] */
  readonly out: Tensor;
  /** [B, H, M], if `logSumExp` is among the outputs. */
  readonly logSumExp: Tensor | undefined;
}

/**
 * Computes the results of the fused forward pass from the same inputs; L only if requested, since it costs another
 * pass.
 */
export function unfusedAttention(attributes: AttentionAttributes, inputs: readonly Tensor[]): Attended {
  return tidy(() => attend(problemOf({ attributes, inputs }), attributes.outputs.includes("logSumExp")));
}

function attend(problem: AttentionProblem, wantsLogSumExp: boolean): Attended {
  const { batch, heads, kvHeads, group, queries, keys, dim, valueDim, softcap, dropout } = problem;
  const { dtype } = given(problem, "q")!;
  const precise = (name: InputName): Tensor => toDType(given(problem, name)!, accumulationDType(dtype));
  const allowed = whoAttends(problem);
  const [k, v] = [unsqueeze(precise("k"), 2), unsqueeze(precise("v"), 2)];
  const [products, sums] = allowed ? [pairProducts, weightedSums] : [plainProducts, matmul];
  const q = reshape(precise("q"), [batch, kvHeads, group, queries, dim]);
  const all = reshape(products(q, k), [batch, heads, queries, keys]);
  const scaled = mul(allowed ? where(allowed, all, 0) : all, problem.scale);
  const bounded = softcap === undefined ? scaled : mul(tanh(mul(scaled, 1 / softcap)), softcap);
  const scores = masked(addOffsets(problem, bounded), allowed);
  const total = given(problem, "sinks") ? withSinks(problem, scores, precise("sinks")) : scores;
  const { shares, logSumExp } = softmaxOf(scores, total, wantsLogSumExp);
  const kept = dropout
    ? where(dropoutMask(problem, [batch, heads, queries, keys]), mul(shares, dropout.keepScale), 0)
    : shares;
  const out = sums(reshape(kept, [batch, kvHeads, group, queries, keys]), v);
  return { out: toDType(reshape(out, [batch, heads, queries, valueDim]), dtype), logSumExp };
}

const plainProducts = (a: Tensor, b: Tensor): Tensor => matmul(a, transpose(b, -2, -1));

const given = ({ inputs }: AttentionProblem, name: InputName): Tensor | undefined => inputs[name]?.tensor;

/** Returns a number for each query or key, as int32 [M, 1] or [N]. Without packing, all batches share the numbers. */
function numbered(
  problem: AttentionProblem,
  axis: "queries" | "keys",
  number: (row: number, of: PlacedSequence) => number,
) {
  const sequences = problem.packed ? sequencesOf(problem) : sequencesOf({ ...problem, batch: 1 });
  const numbers = sequences.flatMap((of) => Array.from({ length: of[axis] }, (_, row) => number(row, of)));
  const vector = tensor(Int32Array.from(numbers));
  return axis === "queries" ? unsqueeze(vector, 1) : vector;
}

/** Returns j − i − shift as int32 [M, N]. */
const distances = (problem: AttentionProblem): Tensor =>
  sub(
    numbered(problem, "keys", (j) => j),
    numbered(problem, "queries", (i, sequence) => i + shiftOf(problem, sequence)),
  );

const sequenceNumbers = (problem: AttentionProblem, axis: "queries" | "keys") =>
  numbered(problem, axis, (_, { index }) => index);

/** Returns the attended pairs as bool, broadcastable to all pairs; undefined if every query attends to every key. */
function whoAttends(problem: AttentionProblem): Tensor | undefined {
  const { band, packed } = problem;
  const bias = given(problem, "bias");
  const distance = band && distances(problem);
  const conditions = [
    given(problem, "mask"),
    bias && ne(bias, -Infinity),
    distance && band.left < Infinity ? ge(distance, -band.left) : undefined,
    distance && band.right < Infinity ? le(distance, band.right) : undefined,
    packed && eq(sequenceNumbers(problem, "queries"), sequenceNumbers(problem, "keys")),
  ].filter((condition) => condition !== undefined);
  if (conditions.length === 0) return undefined;
  const all = conditions.reduce((both, condition) => logicalAnd(both, condition));
  return reshape(all, [...new Array<number>(4 - all.rank).fill(1), ...all.shape]);
}

/** Applies (3) and (4). */
function addOffsets(problem: AttentionProblem, scores: Tensor): Tensor {
  const bias = given(problem, "bias");
  const slopes = given(problem, "slopes");
  const biased = bias ? add(scores, toDType(bias, scores.dtype)) : scores;
  return slopes ? sub(biased, mul(slopesOfRows(problem, slopes), abs(distances(problem)))) : biased;
}

/** Returns slopes as [B or 1, H, M or 1, 1]; with packed sequences, each row gets its sequence's slopes. */
function slopesOfRows(problem: AttentionProblem, slopes: Tensor): Tensor {
  const [count, heads] = tupleOf(slopes.shape, 2);
  if (!problem.packed || count === 1) return reshape(slopes, [count, heads, 1, 1]);
  const rows = indexSelect(slopes, squeeze(sequenceNumbers(problem, "queries"), { dim: 1 }), { dim: 0 });
  return reshape(permute(rows, [1, 0]), [1, heads, -1, 1]);
}

const masked = (scores: Tensor, allowed: Tensor | undefined): Tensor =>
  allowed ? where(allowed, scores, -Infinity) : scores;

const withSinks = ({ batch, heads, queries }: AttentionProblem, scores: Tensor, sinks: Tensor): Tensor =>
  cat([scores, expand(reshape(sinks, [1, heads, 1, 1]), [batch, heads, queries, 1])], { dim: 3 });

/**
 * Returns exp(scores − L) and L = ln Σ exp(total). For a row of −∞ they are 0 and −∞, and no intermediate or gradient
 * is NaN. The first is not computed from the second: L near 1e4 is rounded by up to 5e-4, which would distort row sums
 * and gradients that mostly cancel.
 */
function softmaxOf(scores: Tensor, total: Tensor, wantsLogSumExp: boolean) {
  const isEmpty = logicalNot(any(ne(total, -Infinity), { dim: 3, keepdim: true }));
  const filled = where(isEmpty, 0, total);
  const keys = scores.shape[3];
  const all = softmax(filled, { dim: 3 });
  const probabilities = total.shape[3] === keys ? all : slice(all, { dim: 3, end: keys });
  const sums = wantsLogSumExp && where(isEmpty, -Infinity, logsumexp(filled, { dim: 3, keepdim: true }));
  return {
    shares: where(ne(scores, -Infinity), probabilities, 0),
    logSumExp: sums ? squeeze(sums, { dim: 3 }) : undefined,
  };
}
