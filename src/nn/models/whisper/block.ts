/** A block of the decoder of a {@link Whisper} model. */
import { flashAttention } from "../../../ops/attention/flash_attention.ts";
import { contiguous } from "../../../ops/copy/copy.ts";
import { mul } from "../../../ops/elementwise/arithmetic.ts";
import { matmul } from "../../../ops/matmul/matmul.ts";
import { softmax } from "../../../ops/softmax/softmax.ts";
import { unflatten } from "../../../ops/view/flatten.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import type { AttentionCache } from "../../cache/cache.ts";
import type { KeysAndValues } from "../../cache/store.ts";
import { Dropout } from "../../layers/dropout.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import { DecoderAttention } from "../decoder/attention.ts";
import { newNorm } from "../decoder/block.ts";
import type { AttentionDescription, LayerDescription, NormDescription } from "../decoder/description.ts";
import { DecoderFeedForward } from "../decoder/feed_forward.ts";
import { normalize, type ResidualStream } from "../decoder/residual_stream.ts";
import type { WhisperDescription, WhisperStack } from "./description.ts";

/** @internal Every norm of the model. */
export const whisperNorm: NormDescription = { kind: "layerNorm", eps: 1e-5, bias: true };

/** @internal Describes the self-attention and the feed-forward of a block. */
export function describeLayer(
  { width, activation, dropout, attentionDropout }: WhisperDescription,
  { heads, hidden }: WhisperStack,
  bidirectional: boolean,
): LayerDescription {
  return {
    norms: "before",
    attention: {
      heads,
      keyValueHeads: heads,
      headWidth: width / heads,
      bidirectional,
      dropout: attentionDropout,
      queryKeyValueBias: true,
      keyBias: false,
      outputBias: true,
    },
    feedForward: { hidden, bias: true, activation, gated: false },
    dropout,
  };
}

/**
 * Applies attention of tokens to the states of the encoder.
 *
 * | parameter | shape |
 * |---|---|
 * | `query`, `value`, `output` | `weight` [width, width], `bias` [width] |
 * | `key.weight` | [width, width] |
 */
export class CrossAttention extends Module<[x: Tensor, memory: KeysAndValues], Tensor> {
  readonly query: Linear | QuantizedLinear;
  readonly key: Linear | QuantizedLinear;
  readonly value: Linear | QuantizedLinear;
  readonly output: Linear | QuantizedLinear;
  readonly #description: AttentionDescription;

  constructor(width: number, attention: AttentionDescription, options: LayerOptions) {
    super();
    const layer = layerOptions(options);
    this.#description = attention;
    this.query = new Linear(width, width, layer);
    this.key = new Linear(width, width, { ...layer, bias: false });
    this.value = new Linear(width, width, layer);
    this.output = new Linear(width, width, { ...layer, residual: true });
  }

  /** @param states [batch, positions, width] @returns the keys and values, [batch, heads, positions, headWidth] */
  memoryOf(states: Tensor): KeysAndValues {
    return {
      keys: contiguous(this.split(this.key.forward(states))),
      values: contiguous(this.split(this.value.forward(states))),
    };
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, { keys, values }: KeysAndValues): Tensor {
    const dropout = this.training ? this.#description.dropout : 0;
    const attended = flashAttention(this.split(this.query.forward(x)), keys, values, { dropout });
    return this.output.forward(reshape(transpose(attended, 1, 2), [...x.shape]));
  }

  /** Computes the probabilities of attention to the first positions: [batch, heads, tokens, positions]. */
  probabilities(x: Tensor, keys: Tensor, positions: number): Tensor {
    const scale = 1 / Math.sqrt(this.#description.headWidth);
    const attended = narrow(keys, 2, 0, Math.min(positions, keys.shape[2]));
    const scores = matmul(mul(this.split(this.query.forward(x)), scale), transpose(attended, -2, -1));
    return softmax(scores, -1);
  }

  /** Returns x [batch, tokens, width] as [batch, heads, tokens, headWidth]. */
  private split(x: Tensor): Tensor {
    const { heads, headWidth } = this.#description;
    return transpose(unflatten(x, 2, [heads, headWidth]), 1, 2);
  }
}

/** @internal Inputs of {@link WhisperBlock}. */
export interface WhisperBlockInputs {
  readonly memory: KeysAndValues;
  readonly cache?: AttentionCache | undefined;
  /** Called with the input of attention to the encoder's states. */
  readonly onCross?: ((x: Tensor) => void) | undefined;
}

/**
 * A block of the decoder:
 *
 *     h = x + attention(attentionNorm(x))
 *     c = h + crossAttention(crossNorm(h), memory)
 *     y = c + feedForward(feedForwardNorm(c))
 */
export class WhisperBlock extends Module<[stream: ResidualStream, inputs: WhisperBlockInputs], ResidualStream> {
  readonly attentionNorm: Normalization;
  readonly attention: DecoderAttention;
  readonly crossNorm: Normalization;
  readonly crossAttention: CrossAttention;
  readonly feedForwardNorm: Normalization;
  readonly feedForward: DecoderFeedForward;
  readonly dropout: Dropout;

  constructor(width: number, layer: LayerDescription, options: LayerOptions) {
    super();
    const settings = layerOptions(options);
    const { attention, feedForward, dropout = 0 } = layer;
    this.attentionNorm = newNorm(width, whisperNorm, settings);
    this.attention = new DecoderAttention({ ...settings, width, attention });
    this.crossNorm = newNorm(width, whisperNorm, settings);
    this.crossAttention = new CrossAttention(width, attention, settings);
    this.feedForwardNorm = newNorm(width, whisperNorm, settings);
    this.feedForward = new DecoderFeedForward({ ...settings, width, feedForward });
    this.dropout = new Dropout(dropout);
  }

  /** Runs the block on a residual stream, [batch, tokens, width], whose sum is left to the next norm. */
  override forward(stream: ResidualStream, { memory, cache, onCross }: WhisperBlockInputs): Required<ResidualStream> {
    return tidy(() => {
      const { dropout } = this;
      const first = normalize(this.attentionNorm, stream);
      const attended = dropout.forward(this.attention.forward(first.out, { cache }));
      const second = normalize(this.crossNorm, { residual: first.sum, addition: attended });
      onCross?.(second.out);
      const crossed = dropout.forward(this.crossAttention.forward(second.out, memory));
      const third = normalize(this.feedForwardNorm, { residual: second.sum, addition: crossed });
      return { residual: third.sum, addition: dropout.forward(this.feedForward.forward(third.out)) };
    });
  }
}
