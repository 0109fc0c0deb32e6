/** The per-layer embeddings of Gemma 3n and Gemma 4. */
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import { lt } from "../../../ops/elementwise/comparison.ts";
import { where } from "../../../ops/elementwise/where.ts";
import { unflatten } from "../../../ops/view/flatten.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { Embedding } from "../../layers/embedding.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import { RMSNorm } from "../../layers/normalization.ts";
import type { QuantizedEmbedding } from "../../quantized/embedding.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import type { LoraLinear } from "../../quantized/lora_linear.ts";
import type { DecoderDescription, LayerDescription } from "./description.ts";
import { activations } from "./feed_forward.ts";

/**
 * Computes an input for each layer from the tokens and their embeddings: (√inputWidth · table[token] +
 * norm(projection(embedded) / √width)) / √2.
 *
 * | parameter | shape |
 * |---|---|
 * | `embedding.weight` | [vocabularySize, layers · inputWidth] |
 * | `projection.weight` | [layers · inputWidth, width] |
 * | `norm.weight` | [inputWidth] |
 */
export class LayerInputs extends Module<[tokens: Tensor, embedded: Tensor], Tensor> {
  readonly embedding: Embedding | QuantizedEmbedding;
  readonly projection: Linear | QuantizedLinear | LoraLinear;
  readonly norm: RMSNorm;
  readonly #description: DecoderDescription;

  constructor(description: DecoderDescription, options: LayerOptions) {
    super();
    const layer = layerOptions(options);
    const { vocabularySize, width } = description.layerInputs!;
    const columns = description.layers.length * width;
    this.#description = description;
    this.embedding = new Embedding(vocabularySize, columns, layer);
    this.projection = new Linear(description.width, columns, { ...layer, bias: false });
    this.norm = new RMSNorm(width, { ...layer, eps: description.norm.eps });
  }

  /**
   * @param tokens [batch, tokens]
   * @param embedded [batch, tokens, width]
   * @returns [batch, tokens, layers, inputWidth]
   */
  override forward(tokens: Tensor, embedded: Tensor): Tensor {
    const { layers, width } = this.#description;
    const { vocabularySize, width: inputWidth } = this.#description.layerInputs!;
    const known = where(lt(tokens, vocabularySize), tokens, 0);
    const split = (x: Tensor) => unflatten(x, 2, [layers.length, inputWidth]);
    const looked = mul(split(this.embedding.forward(known)), Math.sqrt(inputWidth));
    const projected = this.norm.forward(split(mul(this.projection.forward(embedded), width ** -0.5)));
    return mul(add(projected, looked), Math.SQRT1_2);
  }
}

/**
 * Computes the term that a layer adds for its input: norm(projection(activation(gate(x)) · input)).
 *
 * | parameter | shape |
 * |---|---|
 * | `gate.weight` | [inputWidth, width] |
 * | `projection.weight` | [width, inputWidth] |
 * | `norm.weight` | [width] |
 */
export class LayerInputGate extends Module<[x: Tensor, input: Tensor], Tensor> {
  readonly gate: Linear | QuantizedLinear | LoraLinear;
  readonly projection: Linear | QuantizedLinear | LoraLinear;
  readonly norm: RMSNorm;
  readonly #description: NonNullable<LayerDescription["layerInput"]>;

  constructor(
    width: number,
    description: NonNullable<LayerDescription["layerInput"]>,
    options: LayerOptions & { readonly eps: number },
  ) {
    super();
    const layer = { ...layerOptions(options), bias: false };
    this.#description = description;
    this.gate = new Linear(width, description.width, layer);
    this.projection = new Linear(description.width, width, layer);
    this.norm = new RMSNorm(width, { ...layerOptions(options), eps: options.eps });
  }

  /** @param x [batch, tokens, width] @param input [batch, tokens, inputWidth] @returns the shape of x */
  override forward(x: Tensor, input: Tensor): Tensor {
    const gate = activations[this.#description.activation](this.gate.forward(x));
    return this.norm.forward(this.projection.forward(mul(gate, input)));
  }
}
