/** The input of an {@link Encoder}'s first block. */
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { Embedding } from "../../layers/embedding.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import type { QuantizedEmbedding } from "../../quantized/embedding.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import { newNorm } from "../decoder/block.ts";
import type { NormDescription } from "../decoder/description.ts";
import type { EmbeddingsDescription } from "./description.ts";
import { positionRows } from "./positions.ts";

/** Options of {@link EncoderEmbeddings}. */
export interface EncoderEmbeddingsOptions extends LayerOptions {
  readonly vocabularySize: number;
  /** The size of hidden states. */
  readonly width: number;
  readonly norm: NormDescription;
  readonly embeddings: EmbeddingsDescription;
}

/**
 * Computes norm(scale · token + position + tokenType + first task type), with a projection if the embeddings are
 * narrower than hidden states.
 *
 * | parameter | shape |
 * |---|---|
 * | `token.weight` | [vocabularySize, embedding width] |
 * | `position.weight` | [positions, embedding width], if positions are learned |
 * | `tokenType.weight` | [token types, embedding width], if there are any |
 * | `taskType.weight` | [task types, embedding width], if there are any |
 * | `norm.weight` | [embedding width], or [width] after a projection |
 * | `projection.weight` | [width, embedding width] |
 */
export class EncoderEmbeddings extends Module<[tokens: Tensor, tokenTypes?: Tensor], Tensor> {
  readonly token: Embedding | QuantizedEmbedding;
  readonly position: Embedding | null;
  readonly tokenType: Embedding | null;
  readonly taskType: Embedding | null;
  readonly norm: Normalization | null;
  readonly projection: Linear | QuantizedLinear | null;
  readonly #description: EmbeddingsDescription;

  constructor({ vocabularySize, width, norm, embeddings, ...options }: EncoderEmbeddingsOptions) {
    super();
    const settings = layerOptions(options);
    const { positions, tokenTypes, taskTypes, projection } = embeddings;
    this.#description = embeddings;
    this.token = new Embedding(vocabularySize, embeddings.width, settings);
    this.position =
      positions && !positions.sinusoids ? new Embedding(positions.count, embeddings.width, settings) : null;
    this.tokenType = tokenTypes > 0 ? new Embedding(tokenTypes, embeddings.width, settings) : null;
    this.taskType = taskTypes === undefined ? null : new Embedding(taskTypes, embeddings.width, settings);
    this.norm = embeddings.norm
      ? newNorm(projection?.place === "before" ? width : embeddings.width, norm, settings)
      : null;
    this.projection = projection ? new Linear(embeddings.width, width, { ...settings, bias: projection.bias }) : null;
  }

  /**
   * @param tokens integers, [batch, tokens]
   * @param tokenTypes integers, [batch, tokens]. Default: 0
   * @returns [batch, tokens, width]
   */
  override forward(tokens: Tensor, tokenTypes?: Tensor): Tensor {
    const { position, tokenType, taskType, norm, projection } = this;
    const { scale = 1, positions } = this.#description;
    const embedded = this.token.forward(tokens);
    let sum = scale === 1 ? embedded : mul(embedded, scale);
    if (positions) sum = add(sum, positionRows(position, positions, tokens, sum));
    if (tokenType) sum = add(sum, tokenTypes ? tokenType.forward(tokenTypes) : tokenType.rowsFrom(0, 1));
    if (taskType) sum = add(sum, taskType.rowsFrom(0, 1));
    const projectsFirst = this.#description.projection?.place === "before";
    const first = projection && projectsFirst ? projection.forward(sum) : sum;
    const normalized = norm ? norm.forward(first) : first;
    return projection && !projectsFirst ? projection.forward(normalized) : normalized;
  }
}
