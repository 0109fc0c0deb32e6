/** A block of a {@link Decoder}. */
import { toDType } from "../../../ops/copy/cast.ts";
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import type { SumAndNorm } from "../../../ops/normalization/normalize.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import { Dropout } from "../../layers/dropout.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Module } from "../../layers/module.ts";
import { LayerNorm, type Normalization, RMSNorm } from "../../layers/normalization.ts";
import { type AttentionInputs, DecoderAttention, type DecoderAttentionOptions } from "./attention.ts";
import { BesideExperts } from "./beside_experts.ts";
import type { LayerDescription, NormDescription, RecurrentDescription } from "./description.ts";
import { Experts } from "./experts.ts";
import { DecoderFeedForward, type DecoderFeedForwardOptions } from "./feed_forward.ts";
import { LayerInputGate } from "./layer_inputs.ts";
import { DeltaNet } from "./recurrent/delta_net.ts";
import { KimiDelta } from "./recurrent/kimi_delta.ts";
import { type Mixer, Parameter } from "./recurrent/mixer.ts";
import { SelectiveState } from "./recurrent/selective_state.ts";
import { ShortConvolution } from "./recurrent/short_convolution.ts";
import { StateSpace } from "./recurrent/state_space.ts";
import { normalize, type ResidualStream, sumOf } from "./residual_stream.ts";

/** Options of {@link DecoderBlock}. */
export interface DecoderBlockOptions extends LayerOptions {
  readonly width: number;
  readonly norm: NormDescription;
  readonly layer: LayerDescription;
}

/** Factories of a block's parts. `TransformerBlock` creates public layers, such as `MultiHeadAttention`. */
export interface BlockParts {
  attention(options: DecoderAttentionOptions): DecoderAttention;
  feedForward(options: DecoderFeedForwardOptions): DecoderFeedForward | Experts;
}

const describedParts: BlockParts = {
  attention: (options) => new DecoderAttention(options),
  feedForward: (options) => new (options.feedForward.experts ? Experts : DecoderFeedForward)(options),
};

function newMixer(width: number, recurrent: RecurrentDescription, options: LayerOptions): Mixer {
  switch (recurrent.kind) {
    case "shortConvolution":
      return new ShortConvolution(width, recurrent, options);
    case "stateSpace":
      return new StateSpace(width, recurrent, options);
    case "selectiveState":
      return new SelectiveState(width, recurrent, options);
    case "deltaNet":
      return new DeltaNet(width, recurrent, options);
    case "kimiDelta":
      return new KimiDelta(width, recurrent, options);
  }
}

/** @internal Creates a norm from its description. */
export function newNorm(width: number, norm: NormDescription, { dtype }: LayerOptions): Normalization {
  const { kind, eps, bias, weight: elementwiseAffine } = norm;
  if (kind === "rmsNorm") return new RMSNorm(width, { dtype, eps });
  return new LayerNorm(width, { dtype, eps, bias, elementwiseAffine });
}

/**
 * A block of a {@link Decoder}. Parts that the description lacks are null, and leave their input unchanged. A block has
 * `attention`, a recurrent layer `mixer`, both, or neither, as in Nemotron-H. If it has both, their outputs are added:
 *
 *     h = x + dropout(attentionPostNorm(attention(attentionNorm(x))))
 *     y = h + dropout(feedForwardPostNorm(feedForward(feedForwardNorm(h))))
 *
 * In a parallel block, the feed-forward reads x instead of h, through `attentionNorm` if the norm is shared.
 */
export class DecoderBlock extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  readonly attentionNorm: Normalization | null;
  readonly attention: DecoderAttention | null;
  readonly mixer: Mixer | null;
  readonly attentionPostNorm: Normalization | null;
  readonly feedForwardNorm: Normalization | null;
  readonly feedForward: DecoderFeedForward | Experts | null;
  readonly feedForwardPostNorm: Normalization | null;
  readonly dropout: Dropout | null;
  readonly beside: BesideExperts | null;
  readonly layerInput: LayerInputGate | null;
  readonly scale: Parameter | null;
  readonly #parallel: LayerDescription["parallel"];
  readonly #residualScale: number;

  constructor({ width, norm, layer, ...options }: DecoderBlockOptions, parts = describedParts) {
    super();
    const { norms, attention, recurrent, feedForward, dropout, parallel, residualScale = 1 } = layer;
    const layerSettings = layerOptions(options);
    const before = () => (norms === "after" ? null : newNorm(width, norm, layerSettings));
    const after = () => (norms === "before" ? null : newNorm(width, norm, layerSettings));
    const attends = attention.heads > 0;
    const isMixing = attends || recurrent !== undefined;
    this.attentionNorm = isMixing ? before() : null;
    this.attention = attends ? parts.attention({ ...layerSettings, width, eps: norm.eps, attention }) : null;
    this.mixer = recurrent ? newMixer(width, recurrent, layerSettings) : null;
    this.attentionPostNorm = isMixing ? after() : null;
    const isWhole = feedForward.hidden > 0;
    this.feedForwardNorm = parallel === "sharedNorm" || !isWhole ? null : before();
    this.feedForward = !isWhole ? null : parts.feedForward({ ...layerSettings, width, feedForward });
    this.feedForwardPostNorm = after();
    this.dropout = dropout === undefined ? null : new Dropout(dropout);
    const further = { ...layerSettings, eps: norm.eps };
    this.beside = layer.beside ? new BesideExperts(width, layer.beside, further) : null;
    this.layerInput = layer.layerInput ? new LayerInputGate(width, layer.layerInput, further) : null;
    this.scale = layer.scaled ? new Parameter(1, layerSettings) : null;
    this.#parallel = parallel;
    this.#residualScale = residualScale;
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, inputs: AttentionInputs = {}): Tensor {
    return tidy(() => sumOf(this.advance({ residual: x }, inputs)));
  }

  /**
   * @internal Runs the block on a {@link ResidualStream}, whose sum is fused with the next norm. Intermediate results
   * are freed at once, so that the next block reuses memory that is still in the CPU cache.
   */
  advance(stream: ResidualStream, inputs: AttentionInputs = {}): Required<ResidualStream> {
    return tidy(() => {
      if (!this.attention && !this.mixer) {
        inputs.cache?.advance(stream.residual.shape[1]);
        return this.fed(stream, inputs);
      }
      const before = normalize(this.attentionNorm, stream);
      // the mixer runs first, because attention advances the cache's token count
      const [mixed, own] = [this.mixer, this.attention].map((part) => part?.forward(before.out, inputs));
      const attended = this.added(mixed && own ? add(mixed, own) : (mixed ?? own)!, this.attentionPostNorm);
      if (!this.feedForward) return { residual: before.sum, addition: attended };
      if (this.#parallel) return { residual: before.sum, addition: add(attended, this.besides(before)) };
      return this.fed({ residual: before.sum, addition: attended }, inputs);
    });
  }

  /** Applies the feed-forward to the sum of a stream. */
  private fed(stream: ResidualStream, inputs: AttentionInputs): Required<ResidualStream> {
    const { sum, out } = normalize(this.feedForwardNorm, stream);
    const output = this.feedForward!.forward(out);
    const whole = this.beside ? this.beside.forward(output, sum) : output;
    return this.finished({ residual: sum, addition: this.added(whole, this.feedForwardPostNorm) }, inputs);
  }

  /** Adds the layer's input, and scales the result. */
  private finished(stream: Required<ResidualStream>, { layerInput }: AttentionInputs): Required<ResidualStream> {
    const sum = this.layerInput ? sumOf(stream) : undefined;
    const { residual, addition } = sum
      ? { residual: sum, addition: this.layerInput!.forward(sum, layerInput!) }
      : stream;
    if (!this.scale) return { residual, addition };
    const factor = toDType(this.scale.forward(), residual.dtype);
    return { residual: mul(residual, factor), addition: mul(addition, factor) };
  }

  /** Computes the feed-forward of a parallel block. */
  private besides({ sum, out }: SumAndNorm): Tensor {
    const input = this.feedForwardNorm ? this.feedForwardNorm.forward(sum) : out;
    return this.added(this.feedForward!.forward(input), this.feedForwardPostNorm);
  }

  /** Applies the norm, the factor and the dropout that follow attention or the feed-forward. */
  private added(x: Tensor, norm: Normalization | null): Tensor {
    const normalized = norm ? norm.forward(x) : x;
    const scaled = this.#residualScale === 1 ? normalized : mul(normalized, this.#residualScale);
    return this.dropout ? this.dropout.forward(scaled) : scaled;
  }
}
