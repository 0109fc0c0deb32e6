/** Attention of a {@link Decoder}. */
import { lastElement } from "../../../core/collections.ts";
import { ArgumentError } from "../../../core/errors.ts";
import { anObject, flag, listOf, someNumber } from "../../../core/kinds.ts";
import { type Kind, named, unlisted } from "../../../core/parameters.ts";
import { currentCapture } from "../../../observe/capture.ts";
import { sigmoid } from "../../../ops/activation/sigmoid.ts";
import { flashAttention } from "../../../ops/attention/flash_attention.ts";
import type { FlashAttentionOptions } from "../../../ops/attention/options.ts";
import { MOST_TOKENS } from "../../../ops/attention/step.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { mul } from "../../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../../ops/elementwise/clamp.ts";
import { cat } from "../../../ops/join/cat.ts";
import { rope as ropeOf } from "../../../ops/position/rope.ts";
import type { RopeTables } from "../../../ops/position/tables.ts";
import { unflatten } from "../../../ops/view/flatten.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow, slice } from "../../../ops/view/slice.ts";
import { split } from "../../../ops/view/split.ts";
import { aTensor } from "../../../tensor/kinds.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Attend, AttentionCache } from "../../cache/cache.ts";
import type { KeysAndValues } from "../../cache/store.ts";
import { type LayerOptions, layerOptions, zeroParameter } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import { RMSNorm } from "../../layers/normalization.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import type { LoraLinear } from "../../quantized/lora_linear.ts";
import { projectedLayers } from "../../quantized/projected_layers.ts";
import { chunkMask } from "./chunks.ts";
import type { AttentionDescription, RopeDescription } from "./description.ts";
import { type HeadNorm, newHeadNorm } from "./head_norms.ts";
import { Indexer, Selections, SparseAttention, withIndexKeys } from "./indexer.ts";
import { LatentProjection } from "./latent.ts";
import { isRelative, rotate, stepRotation } from "./rotation.ts";
import type { SharedKeys } from "./shared_keys.ts";
import { scaledByPosition } from "./temperature.ts";

/** Optional inputs of attention. */
export interface AttentionInputs {
  /** The key/value cache of the previous tokens. Keys and values of x are appended. */
  readonly cache?: AttentionCache | undefined;
  /** bool, true = attends; broadcast to [batch, heads, tokens, keys]. */
  readonly mask?: Tensor<"bool"> | undefined;
  /** The position of each token of x, for `rotary`: [batch, tokens]. Default: the positions after the cached tokens. */
  readonly positions?: Tensor<"int32"> | undefined;
  /**
   * @internal The length of each row's text, including these tokens but not padding; or one length for all rows. Some
   * rotations depend on it. Default: the cached tokens and these.
   */
  readonly lengths?: readonly number[] | undefined;
  /** @internal The rotation of each token of x, instead of a position. */
  readonly rotation?: RopeTables | undefined;
  /** @internal Cumulative lengths of sequences that x concatenates, for a batch of 1: see {@link flashAttention}. */
  readonly bounds?: readonly number[] | undefined;
  /** @internal Keys and values that layers share. */
  readonly shared?: SharedKeys | undefined;
  /** @internal The tokens that queries of sparse attention chose in earlier layers. */
  readonly selections?: Selections | undefined;
  /** @internal The input of the layer besides x: [batch, tokens, inputWidth]. */
  readonly layerInput?: Tensor | undefined;
  /** @internal Whether the mask replaces causal attention: tokens may attend to later ones. Default false. */
  readonly isExact?: boolean | undefined;
}

/** @internal The kinds of {@link AttentionInputs}. */
export const attentionInputs = {
  cache: named(anObject<AttentionCache>("a cache")),
  mask: named(aTensor as Kind<Tensor<"bool">>),
  positions: named(aTensor as Kind<Tensor<"int32">>),
  lengths: named(listOf(someNumber, "a list of lengths")),
  rotation: named(anObject<RopeTables>("tables of cosines and sines")),
  bounds: named(listOf(someNumber, "a list of bounds")),
  shared: named(anObject<SharedKeys>("shared keys")),
  selections: named(anObject<Selections>("selections")),
  layerInput: named(aTensor),
  isExact: named(flag, false),
} as const;

const readInputs = unlisted("DecoderAttention.forward", attentionInputs);

/** A learned score of each head that enters the softmax without a value. */
class Sinks extends Module<[q: Tensor], Tensor> {
  readonly weight: Tensor;

  constructor(heads: number, options: LayerOptions) {
    super();
    this.weight = zeroParameter([heads], options);
  }

  /** @param q the queries @returns the scores in their dtype, [heads] */
  override forward(q: Tensor): Tensor {
    return toDType(this.weight, q.dtype);
  }
}

/** Options of {@link DecoderAttention}. */
export interface DecoderAttentionOptions extends LayerOptions {
  readonly width: number;
  /** The eps of the query and key norms, if there are any. */
  readonly eps?: number | undefined;
  readonly attention: AttentionDescription;
}

/**
 * Applies grouped-query attention in a {@link Decoder}. The projections are three modules, or one if the checkpoint
 * stores them as one, so that each weight is one tensor of the checkpoint.
 *
 * | parameter | shape |
 * |---|---|
 * | `query.weight` | [heads · headWidth, width] |
 * | `key.weight`, `value.weight` | [keyValueHeads · headWidth, width] |
 * | `queryKeyValue.weight` | replaces these if they are fused: rows of q, then of k, then of v |
 * | `queryNorm.weight`, `keyNorm.weight` | [headWidth], or the width of all heads; null without norms |
 * | `latent. …` | see {@link LatentProjection}; replaces the projections of q, k and v, which are null |
 * | `indexer. …` | see {@link Indexer}; null without sparse attention, or if an earlier layer chooses the tokens |
 * | `sinks.weight` | [heads]; null without sinks |
 * | `gate.weight` | [heads · headWidth, width]; null without a gate |
 * | `innerNorm.weight` | [heads · headWidth]; null without this norm |
 * | `output.weight` | [width, heads · headWidth] |
 */
export class DecoderAttention extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  readonly query: Linear | QuantizedLinear | LoraLinear | null;
  readonly key: Linear | QuantizedLinear | LoraLinear | null;
  readonly value: Linear | QuantizedLinear | LoraLinear | null;
  readonly queryKeyValue: Linear | QuantizedLinear | LoraLinear | null;
  readonly queryNorm: HeadNorm | null;
  readonly keyNorm: HeadNorm | null;
  readonly latent: LatentProjection | null;
  readonly indexer: Indexer | null;
  readonly sinks: Sinks | null;
  readonly gate: Linear | QuantizedLinear | LoraLinear | null;
  readonly innerNorm: RMSNorm | null;
  readonly output: Linear | QuantizedLinear | LoraLinear;
  readonly #description: AttentionDescription;
  readonly #eps: number | undefined;

  constructor({ width, eps, attention, ...options }: DecoderAttentionOptions) {
    super();
    const layer = layerOptions(options);
    const { heads, keyValueHeads, headWidth, queryKeyValueBias: bias, outputBias, fused, queryKeyNorm } = attention;
    const { keyBias = bias } = attention;
    const projection = (count: number, hasBias = bias) =>
      new Linear(width, count * headWidth, { ...layer, bias: hasBias });
    const norm = (count: number) =>
      queryKeyNorm ? newHeadNorm(queryKeyNorm, count, headWidth, { ...layer, eps }) : null;
    this.#description = attention;
    this.#eps = eps;
    const isWhole = !fused && !attention.latent;
    const reuses = attention.sharing?.stores === false;
    this.query = isWhole ? projection(heads) : null;
    this.key = isWhole && !reuses ? projection(keyValueHeads, keyBias) : null;
    this.value = isWhole && !reuses && !attention.keysAsValues ? projection(keyValueHeads) : null;
    this.latent = attention.latent ? new LatentProjection({ ...layer, width, attention }) : null;
    this.queryKeyValue = fused ? projection(heads + 2 * keyValueHeads) : null;
    this.queryNorm = norm(heads);
    this.keyNorm = reuses ? null : norm(keyValueHeads);
    const { index, queryRank = 0 } = attention.latent ?? {};
    this.indexer = index && !index.shared ? new Indexer(width, queryRank, index, layer) : null;
    this.sinks = attention.sinks ? new Sinks(heads, layer) : null;
    const valueWidth = attention.latent?.valueWidth ?? headWidth;
    this.gate = attention.gated ? projection(heads, attention.gateBias) : null;
    const { innerNorm } = attention;
    this.innerNorm = innerNorm === undefined ? null : new RMSNorm(heads * valueWidth, { ...layer, eps: innerNorm });
    this.output = new Linear(heads * valueWidth, width, { ...layer, bias: outputBias, residual: true });
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, inputs: AttentionInputs = {}): Tensor {
    const { factors } = this.#description;
    if (!factors) return this.attend(x, inputs);
    return mul(this.attend(mul(x, factors.input), inputs), factors.output);
  }

  private attend(x: Tensor, inputs: AttentionInputs): Tensor {
    const { cache, mask, positions: given, lengths: rowLengths, rotation, bounds, isExact } = readInputs([inputs]);
    const { scale, softcap, rope, temperature, alibi, chunk } = this.#description;
    if (bounds && chunk !== undefined) checkSegments(bounds, chunk, "the model's attention chunk");
    if (this.#description.sharing?.stores === false) return this.attendToShared(x, inputs);
    const narrowed = this.latent?.narrowed(x);
    const [q, k, v] = this.project(x, narrowed);
    const lengths = rowLengths ?? [(cache?.position ?? 0) + x.shape[1]];
    const stepped = given || mask || rotation || bounds ? null : this.step([q, k, v], cache, lengths);
    if (stepped) return this.output.forward(this.finished(x, stepped));
    const positions = given ?? cache?.positionsOf(x.shape[1]) ?? 0;
    const isAfter = this.#description.queryKeyNorm === "rotatedHead";
    const rotated = (projected: Tensor, norm: HeadNorm | null) => {
      const heads = this.split(projected, isAfter ? null : norm);
      const turned = this.unit(rotation ? ropeOf(heads, { ...rotation }) : rotate(heads, rope, positions, lengths));
      return isAfter && norm ? norm.forward(turned) : turned;
    };
    const valueWidth = this.#description.latent?.valueWidth;
    const own = { keys: rotated(k, this.keyNorm), values: this.split(v, this.valueNorm(), valueWidth) };
    const turn = (heads: Tensor) => rotate(heads, this.indexRope(), positions, lengths);
    const appended = this.indexer ? withIndexKeys(own, this.indexer.forward(x, turn)) : own;
    const queries = scaledByPosition(rotated(q, this.queryNorm), temperature, positions);
    const options = { scale, softcap, alibi, cuSeqlens: bounds, dropout: this.activeDropout(), ...this.reach(isExact) };
    const shared = this.#description.sharing && inputs.shared;
    shared?.start(this.#description.sharing!.name);
    const flash = (queries: Tensor, { keys, values }: KeysAndValues, mask: Tensor<"bool"> | undefined) =>
      flashAttention(queries, keys, values, { ...options, sinks: this.sinks?.forward(queries), mask });
    const queriesOf = this.indexer && (() => this.indexer!.queriesOf(x, narrowed!, turn));
    const sparse = this.sparse(inputs, { own: queriesOf ?? undefined, causal: options.causal === true, flash });
    const attend: Attend = (queries, { keys, values }) => {
      shared?.add(this.#description.sharing!.name, { keys, values });
      const reached = this.chunked(lastOfMask(mask, keys), queries, keys, mask && given);
      return (sparse?.attend.bind(sparse) ?? flash)(queries, { keys, values }, reached);
    };
    const attended = cache?.attend(queries, appended, attend) ?? attend(queries, appended);
    return this.output.forward(this.finished(x, reshape(transpose(attended, 1, 2), [...x.shape.slice(0, 2), -1])));
  }

  /** Returns the sparse attention of the layer; undefined if it has none, or if each query attends to all tokens. */
  private sparse(
    { bounds, selections = new Selections() }: AttentionInputs,
    options: Pick<ConstructorParameters<typeof SparseAttention>[0], "own" | "causal" | "flash">,
  ): SparseAttention | undefined {
    const { latent, keyValueHeads: heads } = this.#description;
    if (!latent?.index) return undefined;
    if (bounds) checkSegments(bounds, latent.index.count, "of which its sparse attention chooses tokens");
    return new SparseAttention({ ...options, description: latent.index, heads, selections });
  }

  private indexRope(): RopeDescription | undefined {
    const { rope, latent } = this.#description;
    return rope && { ...rope, interleaved: latent!.index!.interleaved };
  }

  /** Attends to the keys and values that an earlier layer stored. The cache only counts the tokens. */
  private attendToShared(x: Tensor, inputs: AttentionInputs): Tensor {
    const { cache, mask, positions: given, lengths: rowLengths, bounds, isExact } = readInputs([inputs]);
    const { scale, softcap, rope, sharing } = this.#description;
    const count = x.shape[1];
    const lengths = rowLengths ?? [(cache?.position ?? 0) + count];
    const positions = given ?? cache?.positionsOf(count) ?? 0;
    const queries = rotate(this.split(this.query!.forward(x), this.queryNorm), rope, positions, lengths);
    const options = { scale, softcap, cuSeqlens: bounds, dropout: this.activeDropout(), ...this.reach(isExact) };
    const held = inputs.shared!.of(sharing!.name);
    const attended = held.map(({ keys, values }, row) => {
      const own = held.length === 1 ? queries : narrow(queries, 0, row, 1);
      const cast = toDType(own, keys.dtype);
      return toDType(flashAttention(cast, keys, values, { ...options, mask: lastOfMask(mask, keys) }), x.dtype);
    });
    cache?.advance(count);
    const joined = attended.length === 1 ? attended[0] : cat(attended, { dim: 0 });
    return this.output.forward(reshape(transpose(joined, 1, 2), [...x.shape.slice(0, 2), -1]));
  }

  /** Normalizes rotated queries or keys by RMSNorm without a weight, if the model does so. */
  private unit(x: Tensor): Tensor {
    if (!this.#description.rotatedNorm) return x;
    return new RMSNorm(this.#description.headWidth, { eps: this.#eps, elementwiseAffine: false }).forward(x);
  }

  /** Restricts a mask to chunks. @param positions the positions of the queries, if rows have padding */
  private chunked(
    mask: Tensor<"bool"> | undefined,
    queries: Tensor,
    keys: Tensor,
    positions: Tensor<"int32"> | undefined,
  ): Tensor<"bool"> | undefined {
    const { chunk } = this.#description;
    if (chunk === undefined || keys.shape[2] <= chunk) return mask;
    const count = queries.shape[2];
    const firsts = positions && Array.from(positions.dataSync()).filter((_, at) => at % count === count - 1);
    // the last token of a row is never padding
    const starts = firsts?.map((last) => Number(last) - count + 1);
    return chunkMask({ chunk, queries: count, keys: keys.shape[2], firsts: starts, mask });
  }

  private valueNorm(): RMSNorm | null {
    if (!this.#description.valueNorm) return null;
    return new RMSNorm(this.#description.headWidth, { eps: this.#eps, elementwiseAffine: false });
  }

  /** Applies the gate and the norm before the output projection. */
  private finished(x: Tensor, attended: Tensor): Tensor {
    const gated = this.gate ? mul(attended, sigmoid(this.gate.forward(x))) : attended;
    return this.innerNorm ? this.innerNorm.forward(gated) : gated;
  }

  private activeDropout(): number {
    return this.training ? (this.#description.dropout ?? 0) : 0;
  }

  private reach(isExact: boolean): Pick<FlashAttentionOptions, "causal" | "window"> {
    const { window, bidirectional = false } = this.#description;
    const left = window === undefined ? undefined : window - 1;
    if (isExact) return { causal: false, ...(left !== undefined && { window: { left } }) };
    return { causal: !bidirectional, ...(left !== undefined && { window: bidirectional ? left : { left } }) };
  }

  /** Computes attention of a few tokens as one fused operation; null if none supports it. */
  private step(
    [q, k, v]: readonly [Tensor, Tensor, Tensor],
    cache: AttentionCache | undefined,
    lengths: readonly number[],
  ): Tensor | null {
    const { heads, keyValueHeads: kvHeads, headWidth, softcap, window, rope, bidirectional } = this.#description;
    if (
      !cache ||
      bidirectional ||
      this.sinks ||
      this.latent ||
      this.#description.alibi ||
      this.#description.rotatedNorm ||
      this.#description.queryKeyNorm === "rotatedHead" ||
      this.#description.sharing ||
      cache.position + q.shape[1] > (this.#description.chunk ?? Infinity) ||
      this.isTempered(cache, q.shape[1]) ||
      this.activeDropout() > 0 ||
      q.shape[1] > MOST_TOKENS
    )
      return null;
    const { scale = 1 / Math.sqrt(headWidth) } = this.#description;
    const rotation = stepRotation(rope, headWidth, lengths);
    if (!rotation) return null;
    const { chunk, temperature } = this.#description;
    if (chunk !== undefined || temperature || (rope && !isRelative(rope)))
      currentCapture()?.unsupported("attention of a later token may have other operations");
    return cache.step({
      operands: [
        this.normalized(q, this.queryNorm),
        this.normalized(k, this.keyNorm),
        this.normalized(v, this.valueNorm()),
      ],
      formula: { scale, softcap, window, rotation },
      heads,
      kvHeads,
      headWidth,
    });
  }

  /** Whether a query of the next tokens is scaled by its position. */
  private isTempered(cache: AttentionCache, count: number): boolean {
    const { temperature } = this.#description;
    return temperature !== undefined && cache.position + count + (temperature.offset ?? 0) > temperature.length;
  }

  private project(x: Tensor, narrowed?: Tensor): readonly [q: Tensor, k: Tensor, v: Tensor] {
    const { query, key, value, queryKeyValue } = this;
    if (this.latent) return this.latent.forward(x, narrowed);
    if (this.#description.keysAsValues) {
      const [q, k] = [query!.forward(x), key!.forward(x)];
      return [q, k, k];
    }
    if (!queryKeyValue) return projectedLayers(x, [query!, key!, value!]);
    const { heads, keyValueHeads, headWidth } = this.#description;
    const sizes = [heads, keyValueHeads, keyValueHeads].map((count) => count * headWidth);
    return split(queryKeyValue.forward(x), sizes, { dim: -1 }) as [Tensor, Tensor, Tensor];
  }

  /** Returns x [batch, tokens, heads · headWidth] as [batch, heads, tokens, headWidth], normalized. */
  private split(x: Tensor, norm: HeadNorm | null, headWidth = this.#description.headWidth): Tensor {
    const normed = this.normalized(x, norm);
    return transpose(normed.rank === 4 ? normed : unflatten(normed, 2, [x.shape[2] / headWidth, headWidth]), 1, 2);
  }

  /**
   * Applies a query or key norm, then clamps. A norm per head first splits the heads: [batch, tokens, heads,
   * headWidth].
   */
  private normalized(x: Tensor, norm: HeadNorm | null): Tensor {
    const { headWidth, queryKeyNorm, clip } = this.#description;
    const split = (x: Tensor) => (queryKeyNorm === "all" ? x : unflatten(x, 2, [x.shape[2] / headWidth, headWidth]));
    const normed = norm ? norm.forward(split(x)) : x;
    return clip === undefined ? normed : clamp(normed, { min: -clip, max: clip });
  }

  /** @internal */
  override details(): string {
    const { heads, keyValueHeads, headWidth, window, dropout = 0 } = this.#description;
    const shared = keyValueHeads === heads ? "" : `, keyValueHeads: ${keyValueHeads}`;
    const other = [window ? `, window: ${window}` : "", dropout > 0 ? `, dropout: ${dropout}` : ""];
    return `heads: ${heads}${shared}, headWidth: ${headWidth}${other.join("")}`;
  }
}

/** @throws {ArgumentError} `longSegment` if a row has several texts and one is longer than `most` tokens. */
function checkSegments(bounds: readonly number[], most: number, why: string): void {
  const longest = Math.max(...bounds.map((bound, at) => bound - (bounds[at - 1] ?? 0)));
  if (longest <= most) return;
  throw new ArgumentError(
    "Decoder",
    "longSegment",
    `expected texts that share a row to have at most ${most} tokens, ${why}, got ${longest}`,
  );
}

/** Returns the part of a mask for the last keys, if the cache has dropped earlier ones. */
function lastOfMask(mask: Tensor<"bool"> | undefined, keys: Tensor): Tensor<"bool"> | undefined {
  const count = keys.shape[2];
  return mask && lastElement(mask.shape) > count ? slice(mask, { dim: -1, start: -count }) : mask;
}
