import { needsGradient } from "../../autograd/record.ts";
import { countCodepath } from "../../backend/dispatch.ts";
import { getBackend } from "../../backend/policy.ts";
import { checkNumber } from "../../core/options.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { flashAttentionLog } from "../../observe/observer.ts";
import { VmapError } from "../../tensor/batched.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { inOperandDType } from "../autocast/autocast.ts";
import { nextStart } from "../random/distribution.ts";
import type { RandomStart } from "../random/primitive.ts";
import { reshape } from "../view/reshape.ts";
import { dropoutMask } from "./dropout_mask.ts";
import { FlashAttention, fusedForward } from "./function.ts";
import {
  type Projections,
  packedSequences,
  pairOperand,
  projectionsOf,
  sequenceTable,
  sinksOperand,
  slopesOperand,
} from "./operands.ts";
import {
  alignmentOf,
  bandOf,
  checkPath,
  type FlashAttentionOptions,
  flashAttentionOptions,
  numberRules,
} from "./options.ts";
import {
  type AttentionAttributes,
  dropoutOf,
  type InputName,
  inputNames,
  type OutputName,
  type Sequence,
} from "./problem.ts";
import { type Route, routeOf, unmeasuredOptions } from "./route.ts";
import { type Attended, unfusedAttention } from "./unfused.ts";
import { logUnfused } from "./unfused_log.ts";

/** Result of {@link flashAttention} if `returnLogSumExp` or `returnDropoutMask` is set. */
export interface FlashAttentionResult<D extends DType = DType> {
  /** [batch, heads, queries, valueDim] */
  readonly out: Tensor<D>;
  /**
   * [batch, heads, queries]: ln Σ exp of each query's scores, including its sink, before dropout; −∞ for a query that
   * attends to nothing. float32, or float64 if `out` is float64. Differentiable.
   */
  readonly logSumExp: Tensor;
  /**
   * bool [batch, heads, queries, keys], true = kept; undefined without `returnDropoutMask`. All true without dropout;
   * false across packed sequences.
   */
  readonly dropoutMask: Tensor<"bool"> | undefined;
}

type AskingForMore = { readonly returnLogSumExp: true } | { readonly returnDropoutMask: true };

/**
 * Computes attention: out[i] = Σⱼ softmaxⱼ(scale · q[i] · k[j]) · v[j] for each query i. Forward and backward need
 * memory linear in the number of queries and keys. Each of B batches has H heads with M queries of dimension D. H is a
 * multiple of kvHeads (grouped and multi-query attention); head h reads the keys and values of head ⌊h · kvHeads / H⌋.
 *
 * A query that attends to nothing has zeros as output and gradients. Masked keys and values do not affect a query, even
 * if they are NaN. Operands are read through their strides and need not be contiguous. Results are the same on every
 * run, and the dropout mask is the same on every backend.
 *
 * @param q [B, H, M, D], of a float dtype; or [B, M, D] for one head. D and E are at most 256, except with `path:
 * "unfused"`
 * @param k [B, kvHeads, N, D], of the same dtype and rank
 * @param v [B, kvHeads, N, E], of the same dtype and rank
 * @param options they can be combined freely: see {@link FlashAttentionOptions} and `docs/attention.md`
 * @returns [B, H, M, E] of q's dtype, without H if q has none; with `returnLogSumExp` or `returnDropoutMask`, a {@link
 * FlashAttentionResult}
 *
 * @example
 * const [q, k, v] = [0, 1, 2].map(() => randn([2, 8, 1024, 64], { requiresGrad: true }));
 * backward(sum(flashAttention(q, k, v, { causal: true, dropout: 0.1 })));
 *
 * @throws {ShapeError} @throws {DTypeError} if tensors do not match. @throws {ArgumentError} if an option is out of
 * range, or if `alibi` requires a gradient. After an error, nothing has been computed and no random number drawn.
 *
 * Source: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023.
 */
export function flashAttention<D extends DType>(
  q: Tensor<D>,
  k: Tensor<D>,
  v: Tensor<D>,
  options: FlashAttentionOptions & AskingForMore,
): FlashAttentionResult<D>;
export function flashAttention<D extends DType>(
  q: Tensor<D>,
  k: Tensor<D>,
  v: Tensor<D>,
  options?: FlashAttentionOptions & {
    readonly returnLogSumExp?: false | undefined;
    readonly returnDropoutMask?: false | undefined;
  },
): Tensor<D>;
export function flashAttention<D extends DType>(
  q: Tensor<D>,
  k: Tensor<D>,
  v: Tensor<D>,
  options?: FlashAttentionOptions,
): Tensor<D> | FlashAttentionResult<D>;
export function flashAttention(...values: unknown[]): Tensor | FlashAttentionResult {
  const given = flashAttentionParameters(values);
  return tidy(() => {
    const result = attention("flashAttention", given.q, given.k, given.v, given);
    return given.returnLogSumExp || given.returnDropoutMask ? result : result.out;
  });
}

const flashAttentionParameters = parameters("flashAttention", {
  q: operand(aTensor),
  k: operand(aTensor),
  v: operand(aTensor),
  ...flashAttentionOptions,
});

/** @internal Computes attention; errors name `operation`. The caller must tidy. */
export function attention<D extends DType>(
  operation: string,
  q: Tensor<D>,
  k: Tensor<D>,
  v: Tensor<D>,
  options: FlashAttentionOptions,
): FlashAttentionResult<D> {
  return inOperandDType(() => {
    const { attributes, inputs, projections, route } = prepare(operation, q, k, v, options);
    countCodepath(operation, route.backend ?? getBackend(), `${route.kind}: ${route.reason}`);
    const { out, logSumExp } =
      route.kind === "unfused" ? unfused(attributes, inputs, route.reason) : fusedAttention(attributes, inputs, route);
    const { pairs, hasHeads } = projections;
    const withoutHead = <T extends Tensor>(x: Tensor): T => (hasHeads ? x : reshape(x, x.shape.toSpliced(1, 1))) as T;
    return {
      out: withoutHead(out),
      logSumExp: (logSumExp && withoutHead(logSumExp)) as Tensor, // defined whenever flashAttention returns it
      dropoutMask: options.returnDropoutMask ? withoutHead(dropoutMask(attributes, pairs)) : undefined,
    };
  });
}

function fusedAttention(attributes: AttentionAttributes, inputs: readonly Tensor[], { backend }: Route) {
  const call = { attributes, backend };
  const results = needsGradient(...inputs) ? FlashAttention.apply(call, ...inputs) : fusedForward(call, inputs);
  const [out, logSumExp] = results as [Tensor, Tensor?];
  return { out, logSumExp };
}

function unfused(attributes: AttentionAttributes, inputs: readonly Tensor[], reason: string): Attended {
  const compute = (operands: readonly Tensor[]): Attended => unfusedAttention(attributes, operands);
  return flashAttentionLog ? logUnfused(flashAttentionLog, attributes, inputs, reason, compute) : compute(inputs);
}

interface Prepared {
  readonly attributes: AttentionAttributes;
  readonly inputs: readonly Tensor[];
  readonly projections: Projections;
  readonly route: Route;
}

/** Checks all arguments before it draws a random number. */
function prepare(operation: string, q: Tensor, k: Tensor, v: Tensor, options: FlashAttentionOptions): Prepared {
  const projections = projectionsOf(operation, q, k, v);
  const [dim, valueDim] = [projections.q.shape[3], projections.v.shape[3]];
  const call = { dtype: q.dtype, pairs: projections.pairs, dim, valueDim, options: unmeasuredOptions(options) };
  const route = routeOf(operation, checkPath(operation, options.path ?? "auto"), call);
  const packed = packedSequences(operation, options.cuSeqlens, projections);
  const p = checked(operation, "dropout", options.dropout ?? 0);
  const formula = { ...formulaOf(operation, options, dim), packed };
  const operands = operandsOf(operation, projections, options, packed);
  const names = inputNames.filter((name) => operands[name] !== undefined);
  const inputs = names.map((name) => operands[name]!);
  const dropout = p === 0 ? undefined : dropoutOf(p, sameForAll(nextStart(options)).key);
  return {
    attributes: { ...formula, dropout, inputs: names, outputs: outputsOf(route, options, inputs) },
    inputs,
    projections,
    route,
  };
}

/**
 * Rejects dropout that differs between the examples of `vmap`, because one key determines all random numbers of a call.
 */
function sameForAll(start: RandomStart): RandomStart {
  if (!start.perExample) return start;
  throw new VmapError(
    "attention",
    "randomness",
    'attention dropout can\'t differ between the examples of vmap; use { randomness: "same" }, or fold the examples ' +
      "into the batch axis",
  );
}

/** Names the call's outputs. The fused backward needs all three. */
function outputsOf(
  { kind }: Route,
  { returnLogSumExp, returnDropoutMask }: FlashAttentionOptions,
  inputs: readonly Tensor[],
): OutputName[] {
  const isAskedFor = returnLogSumExp || returnDropoutMask;
  if (kind === "fused") return isAskedFor || needsGradient(...inputs) ? ["out", "logSumExp", "logSumExpLow"] : ["out"];
  return isAskedFor ? ["out", "logSumExp"] : ["out"];
}

/** Returns a numeric option after checking its range. */
function checked(operation: string, name: keyof typeof numberRules, value: number): number {
  checkNumber(operation, name, value, numberRules[name]);
  return value;
}

const formulaOf = (operation: string, options: FlashAttentionOptions, dim: number) => ({
  scale: checked(operation, "scale", options.scale ?? 1 / Math.sqrt(dim)),
  softcap: options.softcap === undefined ? undefined : checked(operation, "softcap", options.softcap),
  alignment: alignmentOf(operation, options),
  band: bandOf(operation, options),
});

const operandsOf = (
  operation: string,
  projections: Projections,
  { mask, bias, sinks, alibi }: FlashAttentionOptions,
  packed: readonly Sequence[] | undefined,
): Partial<Record<InputName, Tensor | undefined>> => ({
  q: projections.q,
  k: projections.k,
  v: projections.v,
  mask: pairOperand(operation, "mask", mask, "bool", projections),
  bias: pairOperand(operation, "bias", bias, projections.q.dtype, projections),
  sinks: sinksOperand(operation, sinks, projections),
  slopes: slopesOperand(operation, alibi, projections, packed?.length ?? projections.pairs[0]),
  sequences: packed && sequenceTable(packed),
});
