/** Attention of the decoder of an {@link EncoderDecoder}. */
import { tupleOf } from "../../../core/tuples.ts";
import { flashAttention } from "../../../ops/attention/flash_attention.ts";
import { unflatten } from "../../../ops/view/flatten.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Attend, AttentionCache } from "../../cache/cache.ts";
import type { KeysAndValues } from "../../cache/store.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import type { LoraLinear } from "../../quantized/lora_linear.ts";
import { projectedLayers } from "../../quantized/projected_layers.ts";
import type { EncoderAttentionOptions } from "../encoder/attention.ts";
import type { EncoderAttentionDescription } from "../encoder/description.ts";

type Projection = Linear | QuantizedLinear | LoraLinear;

/** The projections that both kinds of attention have. */
abstract class DecoderProjections<Inputs extends unknown[]> extends Module<[x: Tensor, ...inputs: Inputs], Tensor> {
  readonly query: Projection;
  readonly key: Projection;
  readonly value: Projection;
  readonly output: Projection;
  readonly #description: EncoderAttentionDescription;

  constructor({ width, attention, ...options }: EncoderAttentionOptions & LayerOptions) {
    super();
    const { heads, headWidth, bias } = attention;
    const layer = { ...layerOptions(options), bias };
    const projection = () => new Linear(width, heads * headWidth, layer);
    this.#description = attention;
    this.query = projection();
    this.key = projection();
    this.value = projection();
    this.output = new Linear(heads * headWidth, width, layer);
  }

  /** Factor of the scores. Default 1 / √headWidth. */
  protected get scale(): number | undefined {
    return this.#description.scale;
  }

  /** Returns x [batch, tokens, heads · headWidth] as [batch, heads, tokens, headWidth]. */
  protected split(x: Tensor): Tensor {
    const { heads, headWidth } = this.#description;
    return transpose(unflatten(x, 2, [heads, headWidth]), 1, 2);
  }

  /** Joins the heads of a result, and applies the output projection. @returns [batch, tokens, width] */
  protected join(attended: Tensor, batch: number, tokens: number): Tensor {
    return this.output.forward(reshape(transpose(attended, 1, 2), [batch, tokens, -1]));
  }

  /** @internal */
  override details(): string {
    const { heads, headWidth } = this.#description;
    return `heads: ${heads}, headWidth: ${headWidth}`;
  }
}

/** @internal Inputs of {@link CausalAttention}. */
export interface CausalInputs {
  /** The keys and values of earlier tokens. */
  readonly cache: AttentionCache | undefined;
  /** Added to the scores: [1, heads, tokens, keys]. */
  readonly bias: Tensor | undefined;
}

/**
 * Applies attention of each token to itself and earlier tokens.
 *
 * | parameter | shape |
 * |---|---|
 * | `query.weight`, `key.weight`, `value.weight` | [heads · headWidth, width] |
 * | `output.weight` | [width, heads · headWidth] |
 */
export class CausalAttention extends DecoderProjections<[inputs: CausalInputs]> {
  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, { cache, bias }: CausalInputs): Tensor {
    const projected = projectedLayers(x, [this.query, this.key, this.value]);
    const [queries, keys, values] = tupleOf(
      projected.map((rows) => this.split(rows)),
      3,
    );
    const attend: Attend = (queries, { keys, values }) =>
      flashAttention(queries, keys, values, { scale: this.scale, causal: true, bias });
    const attended = cache?.attend(queries, { keys, values }, attend) ?? attend(queries, { keys, values });
    return this.join(attended, x.shape[0], x.shape[1]);
  }
}

/** @internal Inputs of {@link CrossAttention}. */
export interface CrossInputs {
  /** Keys and values of the encoder's result, as {@link CrossAttention.keysAndValues} returns. */
  readonly held: KeysAndValues;
  /** bool [texts, 1, 1, keys], true = a token of the text; undefined if no text has padding. */
  readonly mask: Tensor<"bool"> | undefined;
}

/**
 * Applies attention of a decoder's tokens to the encoder's result. Several rows of the decoder may attend to one text,
 * as beams do; such rows follow each other. The parameters match {@link CausalAttention}.
 */
export class CrossAttention extends DecoderProjections<[inputs: CrossInputs]> {
  /** Computes keys and values of the encoder's result: [texts, heads, tokens, headWidth]. */
  keysAndValues(states: Tensor): KeysAndValues {
    const [keys, values] = [this.key, this.value].map((layer) => this.split(layer.forward(states)));
    return { keys: keys, values: values };
  }

  /** @param x [rows, tokens, width]; rows is a multiple of the number of texts @returns [rows, tokens, width] */
  override forward(x: Tensor, { held: { keys, values }, mask }: CrossInputs): Tensor {
    const [rows, tokens] = tupleOf(x.shape, 3);
    // the tokens of all rows of a text are queries of one attention, so that keys and values are not repeated
    const queries = this.split(reshape(this.query.forward(x), [keys.shape[0], -1, keys.shape[1] * keys.shape[3]]));
    return this.join(flashAttention(queries, keys, values, { scale: this.scale, mask }), rows, tokens);
  }
}
