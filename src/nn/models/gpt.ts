import { choice, either, flag } from "../../core/kinds.ts";
import { named, parameters, required } from "../../core/parameters.ts";
import { openSafetensors } from "../../io/safetensors/open.ts";
import type { Dropout } from "../layers/dropout.ts";
import type { Embedding } from "../layers/embedding.ts";
import { gpt2Initialization, type LayerOptions, noInitialization } from "../layers/initialization.ts";
import { epsilon, layerCount, layerParameters, optionsNamed, probability, size } from "../layers/kinds.ts";
import type { LayerNorm } from "../layers/normalization.ts";
import type { StateDict } from "../layers/state_dict.ts";
import type { QuantizedEmbedding } from "../quantized/embedding.ts";
import { type BlockOptions, describeBlock, TransformerBlock } from "./block.ts";
import { Decoder } from "./decoder/decoder.ts";
import { type Gpt2Config, optionsOfGpt2 } from "./gpt.hugging_face.ts";
import { readConfig } from "./hugging_face/config.ts";
import type { TensorSource } from "./hugging_face/mappings.ts";

/** The dropout probabilities of {@link GPT} in training. */
export interface GPTDropout {
  /** The probability for embeddings. Default 0. */
  readonly embedding?: number | undefined;
  /** The probability for attention probabilities. Default 0. */
  readonly attention?: number | undefined;
  /** The probability for outputs of attention and feed-forward. Default 0. */
  readonly residual?: number | undefined;
}

/** Options of {@link GPT}. */
export interface GPTOptions extends LayerOptions {
  /** The number of tokens in the vocabulary. */
  vocabularySize: number;
  /** The maximum number of tokens in a sequence. */
  contextLength: number;
  /** The number of blocks. */
  layers: number;
  /** The number of attention heads; `width` is a multiple of it. */
  heads: number;
  /** The size of embeddings and hidden states. */
  width: number;
  /** The hidden size of the feed-forward. Default 4 · width. */
  hidden?: number | undefined;
  /** The dropout probability: one for all, or one for each kind. Default 0. */
  dropout?: number | GPTDropout | undefined;
  /** Whether linear layers and norms have biases. Default true. */
  bias?: boolean | undefined;
  /** The activation of the feed-forward. Default `"geluTanh"`, GPT-2's. */
  activation?: "gelu" | "geluTanh" | undefined;
  /** The eps of the norms. Default 1e-5. */
  eps?: number | undefined;
  /** Whether the output head shares the token embedding's weight. Default true. */
  tied?: boolean | undefined;
}

/** One probability for all kinds of dropout, or one for each. */
const dropouts = either(probability, optionsNamed<GPTDropout>("embedding", "attention", "residual"));

const gptParameters = parameters("GPT", {
  vocabularySize: required(size),
  contextLength: required(size),
  layers: required(layerCount),
  heads: required(size),
  width: required(size),
  hidden: named(size),
  dropout: named(dropouts, 0),
  bias: named(flag, true),
  activation: named(choice("gelu", "geluTanh"), "geluTanh"),
  eps: named(epsilon, 1e-5),
  tied: named(flag, true),
  ...layerParameters,
});

/**
 * A language model with GPT-2's architecture: learned position embeddings, pre-norm {@link TransformerBlock}s, gelu
 * with the tanh approximation, and an output head tied to the token embedding. Weights are initialized by
 * {@link gpt2Initialization}.
 *
 * | parameter | shape |
 * |---|---|
 * | `tokenEmbedding.weight` | [vocabularySize, width] |
 * | `positionEmbedding.weight` | [contextLength, width] |
 * | `blocks.0. …` | see {@link TransformerBlock} |
 * | `finalNorm.weight`, `finalNorm.bias` | [width] |
 * | `head.weight` | [vocabularySize, width], if not tied |
 *
 * @example
 * const model = new GPT({ vocabularySize: 256, contextLength: 64, layers: 4, heads: 4, width: 128 });
 * const logits = model.forward(tokens); // int32[12, 64] → float32[12, 64, 256]
 * crossEntropy(logits, targets, { dim: 2 }).backward();
 *
 * @throws {ArgumentError} for sizes below 1, a width that is not a multiple of `heads`, and probabilities outside [0,
 * 1).
 */
export class GPT extends Decoder {
  declare readonly positionEmbedding: Embedding | QuantizedEmbedding;
  declare readonly dropout: Dropout;
  declare readonly blocks: readonly TransformerBlock[];
  declare readonly finalNorm: LayerNorm;

  constructor(options: GPTOptions);
  constructor(...values: unknown[]) {
    const { vocabularySize, contextLength, layers, width, tied, ...options } = gptParameters(values);
    const { dtype, generator, initialization = gpt2Initialization(layers) } = options;
    const dropout = dropoutOf(options.dropout);
    const { heads, hidden, bias, eps, activation } = options;
    const block: BlockOptions = {
      dtype,
      generator,
      initialization,
      width,
      heads,
      hidden,
      bias,
      eps,
      causal: true,
      feedForward: activation,
      dropout: dropout.residual,
      attentionDropout: dropout.attention,
    };
    const { norm, layer } = describeBlock(block);
    super(
      {
        architecture: "gpt2",
        vocabularySize,
        contextLength,
        width,
        norm,
        learnedPositions: true,
        tied,
        dropout: dropout.embedding,
        layers: Array.from({ length: layers }, () => layer),
      },
      block,
      () => new TransformerBlock(block),
    );
  }

  /**
   * Loads a GPT-2 model of Hugging Face's `transformers` from a folder with `config.json` and `model.safetensors`,
   * which may be sharded.
   *
   * @param options `dtype`: the dtype that weights are converted to. Default float32
   *
   * @example
   * const model = GPT.fromPretrained("gpt2").eval();
   *
   * @throws {FileError} for files that do not exist. @throws {FileFormatError} for damaged files.
   * @throws {ArgumentError} for the config of another architecture. @throws {StateDictError} for tensors that do not
   * match the config.
   */
  static fromPretrained(folder: string, options: Pick<LayerOptions, "dtype"> = {}): GPT {
    using tensors = openSafetensors(folder);
    return GPT.fromHuggingFace(readConfig("GPT", folder), tensors, options);
  }

  /**
   * Creates a model from the contents of the files that `fromPretrained` reads.
   *
   * @param config the contents of `config.json`
   * @param tensors by Hugging Face's names, with or without the prefix `transformer.`
   * @param options `dtype`: the dtype that weights are converted to. Default float32
   *
   * @throws {ArgumentError} for the config of another architecture. @throws {StateDictError} for tensors that do not
   * match the config.
   */
  static fromHuggingFace(
    config: Gpt2Config,
    tensors: Readonly<StateDict> | TensorSource,
    options: Pick<LayerOptions, "dtype"> = {},
  ): GPT {
    const model = new GPT({ ...optionsOfGpt2(config), ...options, initialization: noInitialization });
    model.loadHuggingFace(tensors);
    return model;
  }
}

const dropoutOf = (dropout: number | GPTDropout): GPTDropout =>
  typeof dropout === "number"
    ? { embedding: dropout, attention: dropout, residual: dropout }
    : { embedding: dropout.embedding ?? 0, attention: dropout.attention ?? 0, residual: dropout.residual ?? 0 };
