/** The text encoder of CLIP. */
import { ArgumentError, ShapeError } from "../core/errors.ts";
import { choice } from "../core/kinds.ts";
import { named, operand, parameters, required } from "../core/parameters.ts";
import { tupleOf } from "../core/tuples.ts";
import { Embedding } from "../nn/layers/embedding.ts";
import { type LayerOptions, layerOptions } from "../nn/layers/initialization.ts";
import { epsilon, layerCount, layerParameters, size } from "../nn/layers/kinds.ts";
import { Linear } from "../nn/layers/linear.ts";
import { Module } from "../nn/layers/module.ts";
import { LayerNorm } from "../nn/layers/normalization.ts";
import * as ops from "../ops/index.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";

/** Options of {@link TextEncoder}. */
export interface TextEncoderOptions extends LayerOptions {
  /** The number of tokens in the vocabulary; 49408 for CLIP's. */
  vocabularySize: number;
  /** The size of hidden states; 768 in Stable Diffusion 1. */
  width: number;
  /** The number of blocks; 12 in Stable Diffusion 1. */
  layers: number;
  /** The number of attention heads; 12 in Stable Diffusion 1. */
  heads: number;
  /** The inner size of feed-forwards. Default 4 · width. */
  innerWidth?: number | undefined;
  /** The maximum number of tokens. Default 77. */
  contextLength?: number | undefined;
  /** The activation of feed-forwards: x σ(1.702 x), or GELU as in Stable Diffusion 2. Default `"quickGelu"`. */
  activation?: "quickGelu" | "gelu" | undefined;
  /** Added to variances in layer norms. Default 1e-5. */
  normEps?: number | undefined;
}

const readOptions = parameters("TextEncoder", {
  vocabularySize: required(size),
  width: required(size),
  layers: required(layerCount),
  heads: required(size),
  innerWidth: named(size),
  contextLength: named(size, 77),
  activation: named(choice("quickGelu", "gelu"), "quickGelu"),
  normEps: named(epsilon, 1e-5),
  ...layerParameters,
});
type Options = ReturnType<typeof readOptions>;

class Embeddings extends Module<[tokens: Tensor], Tensor> {
  readonly tokenEmbedding: Embedding;
  readonly positionEmbedding: Embedding;

  constructor({ vocabularySize, contextLength, width, ...options }: Options) {
    super();
    this.tokenEmbedding = new Embedding(vocabularySize, width, layerOptions(options));
    this.positionEmbedding = new Embedding(contextLength, width, layerOptions(options));
  }

  override forward(tokens: Tensor): Tensor {
    const positions = ops.narrow(this.positionEmbedding.weight, 0, 0, tokens.shape[1]);
    return ops.add(this.tokenEmbedding.forward(tokens), positions);
  }
}

class SelfAttention extends Module<[x: Tensor], Tensor> {
  readonly kProj: Linear;
  readonly vProj: Linear;
  readonly qProj: Linear;
  readonly outProj: Linear;
  readonly #heads: number;

  constructor({ width, heads, ...options }: Options) {
    super();
    const projection = () => new Linear(width, width, layerOptions(options));
    this.kProj = projection();
    this.vProj = projection();
    this.qProj = projection();
    this.outProj = projection();
    this.#heads = heads;
  }

  override forward(x: Tensor): Tensor {
    const [q, k, v] = tupleOf(
      [this.qProj, this.kProj, this.vProj].map((layer) =>
        ops.transpose(ops.unflatten(layer.forward(x), 2, [this.#heads, -1]), 1, 2),
      ),
      3,
    );
    const attended = ops.flashAttention(q, k, v, { causal: true });
    return this.outProj.forward(ops.flatten(ops.transpose(attended, 1, 2), 2));
  }
}

class FeedForward extends Module<[x: Tensor], Tensor> {
  readonly fc1: Linear;
  readonly fc2: Linear;
  readonly #activation: Options["activation"];

  constructor({ width, innerWidth = 4 * width, activation, ...options }: Options) {
    super();
    this.fc1 = new Linear(width, innerWidth, layerOptions(options));
    this.fc2 = new Linear(innerWidth, width, layerOptions(options));
    this.#activation = activation;
  }

  override forward(x: Tensor): Tensor {
    const states = this.fc1.forward(x);
    const quick = () => ops.mul(states, ops.sigmoid(ops.mul(states, 1.702)));
    return this.fc2.forward(this.#activation === "gelu" ? ops.gelu(states) : quick());
  }
}

class EncoderLayer extends Module<[x: Tensor], Tensor> {
  readonly selfAttn: SelfAttention;
  readonly layerNorm1: LayerNorm;
  readonly mlp: FeedForward;
  readonly layerNorm2: LayerNorm;

  constructor(options: Options) {
    super();
    const norm = () => new LayerNorm(options.width, { ...layerOptions(options), eps: options.normEps });
    this.selfAttn = new SelfAttention(options);
    this.layerNorm1 = norm();
    this.mlp = new FeedForward(options);
    this.layerNorm2 = norm();
  }

  override forward(x: Tensor): Tensor {
    const states = ops.add(x, this.selfAttn.forward(this.layerNorm1.forward(x)));
    return ops.add(states, this.mlp.forward(this.layerNorm2.forward(states)));
  }
}

class Layers extends Module<[x: Tensor], Tensor> {
  readonly layers: readonly EncoderLayer[];

  constructor(options: Options) {
    super();
    this.layers = Array.from({ length: options.layers }, () => new EncoderLayer(options));
  }

  override forward(x: Tensor): Tensor {
    return this.layers.reduce((states, layer) => layer.forward(states), x);
  }
}

/**
 * Computes the states of a text's tokens, each from the tokens before it: the text encoder of CLIP, `CLIPTextModel` of
 * `transformers`. Parameters have its names in camelCase.
 *
 * @example
 * const encoder = new diffusion.TextEncoder({ vocabularySize: 99, width: 16, innerWidth: 32, layers: 1, heads: 2 });
 * encoder.forward(tensor([[1, 2, 3]], { dtype: "int64" })).shape; // [1, 3, 16]
 *
 * @throws {ArgumentError} `invalidOption` if `heads` does not divide `width`.
 */
export class TextEncoder extends Module<[tokens: Tensor], Tensor> {
  readonly embeddings: Embeddings;
  readonly encoder: Layers;
  readonly finalLayerNorm: LayerNorm;
  readonly #options: Options;

  constructor(options: TextEncoderOptions);
  constructor(...values: unknown[]) {
    super();
    const options = readOptions(values);
    const { width, heads, normEps } = options;
    if (width % heads !== 0)
      throw new ArgumentError("TextEncoder", "invalidOption", `expected ${heads} heads to divide the width ${width}`);
    this.#options = options;
    this.embeddings = new Embeddings(options);
    this.encoder = new Layers(options);
    this.finalLayerNorm = new LayerNorm(width, { ...layerOptions(options), eps: normEps });
  }

  /** The maximum number of tokens. */
  get contextLength(): number {
    return this.#options.contextLength;
  }

  /**
   * @param tokens integers below `vocabularySize`, [batch, tokens]
   * @returns the states after the last layer norm, [batch, tokens, width]
   *
   * @throws {ShapeError} for another rank, or too many tokens. @throws {ArgumentError} for a token that is not in the
   * vocabulary.
   */
  override forward(tokens: Tensor): Tensor;
  override forward(...values: unknown[]): Tensor {
    const { tokens } = readForward(values);
    const { contextLength } = this.#options;
    if (tokens.rank !== 2 || tokens.shape[1] > contextLength || tokens.shape[1] === 0)
      throw new ShapeError(
        "TextEncoder",
        "wrongShape",
        `expected tokens to be [batch, 1 to ${contextLength}], got ${tokens.describe()}`,
      );
    return tidy(() => this.finalLayerNorm.forward(this.encoder.forward(this.embeddings.forward(tokens))));
  }
}
const readForward = parameters("TextEncoder.forward", { tokens: operand(aTensor) });
