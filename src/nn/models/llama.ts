import { aNumber, flag } from "../../core/kinds.ts";
import { positive } from "../../core/options.ts";
import { named, parameters, required } from "../../core/parameters.ts";
import { openSafetensors } from "../../io/safetensors/open.ts";
import type { RopeScaling } from "../../ops/position/rope.ts";
import { type LayerOptions, layerOptions, llamaInitialization, noInitialization } from "../layers/initialization.ts";
import { epsilon, layerCount, layerParameters, probability, ropeScaling, size } from "../layers/kinds.ts";
import type { RMSNorm } from "../layers/normalization.ts";
import type { StateDict } from "../layers/state_dict.ts";
import { type BlockOptions, describeBlock, TransformerBlock } from "./block.ts";
import { Decoder } from "./decoder/decoder.ts";
import { readConfig } from "./hugging_face/config.ts";
import type { TensorSource } from "./hugging_face/mappings.ts";
import { type LlamaConfig, optionsOfLlama } from "./llama.hugging_face.ts";

/** Options of {@link Llama}. */
export interface LlamaOptions extends LayerOptions {
  /** The number of tokens in the vocabulary. */
  vocabularySize: number;
  /** The maximum number of tokens in a sequence. */
  contextLength: number;
  /** The number of blocks. */
  layers: number;
  /** The number of query heads. */
  heads: number;
  /** The number of key and value heads; `heads` is a multiple of it. Default `heads`. */
  keyValueHeads?: number | undefined;
  /** The size of embeddings and hidden states. */
  width: number;
  /** The size of each head. Default width / heads. */
  headWidth?: number | undefined;
  /** The hidden size of the feed-forward. Default: 8/3 · width, rounded up to a multiple of 32. */
  hidden?: number | undefined;
  /** The eps of the norms. Default 1e-5. */
  eps?: number | undefined;
  /** The base (theta) of the rotary position embeddings. Default 10,000. */
  ropeBase?: number | undefined;
  /** How rotary position embeddings are scaled for a longer context. Default: no scaling. */
  ropeScaling?: RopeScaling | undefined;
  /** Whether the attention projections have biases. Default false. */
  attentionBias?: boolean | undefined;
  /** Whether the feed-forward's projections have biases. Default false. */
  feedForwardBias?: boolean | undefined;
  /** The dropout probability of attention probabilities in training. Default 0. */
  attentionDropout?: number | undefined;
  /** Whether the output head shares the token embedding's weight. Default false. */
  tied?: boolean | undefined;
}

const llamaParameters = parameters("Llama", {
  vocabularySize: required(size),
  contextLength: required(size),
  layers: required(layerCount),
  heads: required(size),
  keyValueHeads: named(size),
  width: required(size),
  headWidth: named(size),
  hidden: named(size),
  eps: named(epsilon, 1e-5),
  ropeBase: named(aNumber(positive)),
  ropeScaling: named(ropeScaling),
  attentionBias: named(flag, false),
  feedForwardBias: named(flag, false),
  attentionDropout: named(probability, 0),
  tied: named(flag, false),
  ...layerParameters,
});

/**
 * A language model with Llama's architecture: rotary position embeddings in Hugging Face's convention (pairs from the
 * two halves of a head), {@link RMSNorm}, {@link SwiGLU} and grouped-query attention. Weights are initialized by
 * {@link llamaInitialization}.
 *
 * | parameter | shape |
 * |---|---|
 * | `tokenEmbedding.weight` | [vocabularySize, width] |
 * | `blocks.0. …` | see {@link TransformerBlock} |
 * | `finalNorm.weight` | [width] |
 * | `head.weight` | [vocabularySize, width], if not tied |
 *
 * @example
 * const sizes = { vocabularySize: 256, contextLength: 64, layers: 4, heads: 4, keyValueHeads: 2, width: 128 };
 * const model = new Llama(sizes);
 * const logits = model.forward(tokens); // int32[12, 64] → float32[12, 64, 256]
 *
 * @throws {ArgumentError} for sizes below 1, a width that is not a multiple of `heads`, and `heads` that is not a
 * multiple of `keyValueHeads`.
 */
export class Llama extends Decoder {
  declare readonly blocks: readonly TransformerBlock[];
  declare readonly finalNorm: RMSNorm;

  constructor(options: LlamaOptions);
  constructor(...values: unknown[]) {
    const { vocabularySize, contextLength, layers, tied, ...options } = llamaParameters(values);
    const block = blockOf({ ...options, initialization: options.initialization ?? llamaInitialization() });
    const { width, norm, layer } = describeBlock(block);
    super(
      {
        architecture: "llama",
        vocabularySize,
        contextLength,
        width,
        norm,
        tied,
        layers: Array.from({ length: layers }, () => layer),
      },
      block,
      () => new TransformerBlock(block),
    );
  }

  /**
   * Loads a Llama model of Hugging Face's `transformers` from a folder with `config.json` and `model.safetensors`,
   * which may be sharded.
   *
   * @param options `dtype`: the dtype that weights are converted to. Default float32
   *
   * @example
   * const model = Llama.fromPretrained("llama-3.2-1b", { dtype: "bfloat16" }).eval();
   *
   * @throws {FileError} for files that do not exist. @throws {FileFormatError} for damaged files.
   * @throws {ArgumentError} for the config of another architecture. @throws {StateDictError} for tensors that do not
   * match the config.
   */
  static fromPretrained(folder: string, options: Pick<LayerOptions, "dtype"> = {}): Llama {
    using tensors = openSafetensors(folder);
    return Llama.fromHuggingFace(readConfig("Llama", folder), tensors, options);
  }

  /**
   * Creates a model from the contents of the files that `fromPretrained` reads.
   *
   * @param config the contents of `config.json`
   * @param tensors by Hugging Face's names
   * @param options `dtype`: the dtype that weights are converted to. Default float32
   *
   * @throws {ArgumentError} for the config of another architecture. @throws {StateDictError} for tensors that do not
   * match the config.
   */
  static fromHuggingFace(
    config: LlamaConfig,
    tensors: Readonly<StateDict> | TensorSource,
    options: Pick<LayerOptions, "dtype"> = {},
  ): Llama {
    const model = new Llama({ ...optionsOfLlama(config), ...options, initialization: noInitialization });
    model.loadHuggingFace(tensors);
    return model;
  }
}

/** The options of each block. */
function blockOf(options: Omit<LlamaOptions, "vocabularySize" | "contextLength" | "layers" | "tied">): BlockOptions {
  const { width, heads, keyValueHeads, headWidth, hidden = defaultHidden(width), eps, attentionDropout } = options;
  return {
    ...layerOptions(options),
    width,
    heads,
    keyValueHeads,
    headWidth,
    hidden,
    eps,
    attentionDropout,
    norm: "rmsNorm",
    feedForward: "swiglu",
    causal: true,
    bias: options.attentionBias,
    feedForwardBias: options.feedForwardBias,
    rotary: { base: options.ropeBase, scaling: options.ropeScaling },
  };
}

/**
 * 8/3 · width, so that SwiGLU's three matrices have as many parameters as an MLP's two with a hidden size of 4 · width.
 */
const defaultHidden = (width: number): number => Math.ceil((8 * width) / 3 / 32) * 32;
