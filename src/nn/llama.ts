import { openSafetensors } from "../io/safetensors/open.ts";
import type { RopeScaling } from "../ops/position/rope.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { TransformerBlock } from "./block.ts";
import { checkCounts } from "./checks.ts";
import { Embedding } from "./embedding.ts";
import { readConfig } from "./hugging_face/config.ts";
import { type LlamaConfig, llamaPlaces, optionsOfLlama } from "./hugging_face/llama.ts";
import type { Place, TensorSource } from "./hugging_face/places.ts";
import { type LayerOptions, layerOptions, llamaInitialization, noInitialization } from "./initialization.ts";
import { LanguageModel } from "./language_model.ts";
import { Linear } from "./linear.ts";
import { RMSNorm } from "./normalization.ts";
import type { StateDict } from "./state_dict.ts";

/** What {@link Llama} is made of. */
export interface LlamaOptions extends LayerOptions {
  /** How many different tokens there are. */
  vocabularySize: number;
  /** How many tokens it sees at most. */
  contextLength: number;
  /** How many blocks. */
  layers: number;
  /** How many heads of queries each attention has. */
  heads: number;
  /** How many heads of keys and values, of which `heads` is a multiple. Default `heads`. */
  keyValueHeads?: number | undefined;
  /** Of embeddings and blocks. */
  width: number;
  /** The size of each head. Default width / heads. */
  headWidth?: number | undefined;
  /** The size between the feed-forward's projections. Default: 8/3 · width, rounded up to a multiple of 32. */
  hidden?: number | undefined;
  /** Of the norms. Default 1e-5. */
  eps?: number | undefined;
  /** Of the rotary positions. Default 10,000. */
  ropeBase?: number | undefined;
  /** How rotary positions are stretched to a longer context. Default: not. */
  ropeScaling?: RopeScaling | undefined;
  /** Whether attention's projections have biases. Default false. */
  attentionBias?: boolean | undefined;
  /** Whether the feed-forward's projections have biases. Default false. */
  feedForwardBias?: boolean | undefined;
  /** The probability with which a probability of attention is dropped in training. Default 0. */
  attentionDropout?: number | undefined;
  /** Whether the table of embeddings makes the logits too. Default false. */
  tied?: boolean | undefined;
}

/**
 * A language model in Llama's architecture: rotary positions in Hugging Face's convention of halves, {@link RMSNorm}, {@link SwiGLU}, and keys and values
 * that several heads of queries may share. Weights start as {@link llamaInitialization}.
 *
 * | parameter | shape |
 * |---|---|
 * | `tokenEmbedding.weight` | [vocabularySize, width] |
 * | `blocks.0. …` | see {@link TransformerBlock} |
 * | `finalNorm.weight` | [width] |
 * | `head.weight` | [vocabularySize, width], where it is not tied |
 *
 * @example
 * const model = new Llama({ vocabularySize: 256, contextLength: 64, layers: 4, heads: 4, keyValueHeads: 2, width: 128 });
 * const logits = model.forward(tokens); // int32[12, 64] → float32[12, 64, 256]
 *
 * @throws {ArgumentError} for sizes below 1, and numbers of heads that do not divide each other or the width.
 */
export class Llama extends LanguageModel {
  override readonly vocabularySize: number;
  override readonly contextLength: number;
  override readonly slides = true;
  override readonly tokenEmbedding: Embedding;
  override readonly blocks: readonly TransformerBlock[];
  override readonly finalNorm: RMSNorm;
  override readonly head: Linear | null;

  constructor(options: LlamaOptions) {
    super();
    const { vocabularySize, contextLength, layers, heads, width, tied = false, eps = 1e-5 } = options;
    checkCounts("Llama", { vocabularySize, contextLength, layers, heads, width });
    const { dtype, generator, initialization = llamaInitialization() } = options;
    const layer = { dtype, generator, initialization };
    this.vocabularySize = vocabularySize;
    this.contextLength = contextLength;
    this.tokenEmbedding = new Embedding(vocabularySize, width, layer);
    this.blocks = Array.from({ length: layers }, () => blockOf({ ...options, ...layer, eps }));
    this.finalNorm = new RMSNorm(width, { dtype, eps });
    this.head = tied ? null : new Linear(width, vocabularySize, { ...layer, bias: false });
  }

  /**
   * A model of Hugging Face's Llama family, from a folder with its `config.json` and `model.safetensors`, which may be in parts.
   *
   * @param options `dtype`: what weights are converted to. Default float32
   *
   * @example
   * const model = Llama.fromPretrained("llama-3.2-1b", { dtype: "bfloat16" }).eval();
   *
   * @throws {FileError} {@link FileFormatError} for files that are not there, or broken. @throws {ArgumentError} for a config of another
   * architecture. @throws {StateDictError} for tensors that do not fit it.
   */
  static fromPretrained(folder: string, options: Pick<LayerOptions, "dtype"> = {}): Llama {
    using tensors = openSafetensors(folder);
    return Llama.fromHuggingFace(readConfig("Llama", folder) as LlamaConfig, tensors, options);
  }

  /**
   * The same of what such files hold.
   *
   * @param config the contents of `config.json`
   * @param tensors by Hugging Face's names
   * @param options `dtype`: what weights are converted to. Default float32
   *
   * @throws {ArgumentError} for a config of another architecture. @throws {StateDictError} for tensors that do not fit it.
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

  /** @internal */
  protected override embed(tokens: Tensor): Tensor {
    return this.tokenEmbedding.forward(tokens);
  }

  /** @internal */
  override huggingFacePlaces(): Place[] {
    return llamaPlaces(this);
  }
}

const blockOf = (options: LlamaOptions): TransformerBlock =>
  new TransformerBlock({
    ...layerOptions(options),
    ...{ width: options.width, heads: options.heads, keyValueHeads: options.keyValueHeads },
    ...{ headWidth: options.headWidth, hidden: options.hidden ?? usualHidden(options.width) },
    ...({ norm: "rmsNorm", feedForward: "swiglu", causal: true } as const),
    ...{ eps: options.eps, attentionDropout: options.attentionDropout },
    ...{ bias: options.attentionBias ?? false, feedForwardBias: options.feedForwardBias ?? false },
    rotary: { base: options.ropeBase, scaling: options.ropeScaling },
  });

/** As many parameters in three matrices as 4 · width makes in two. */
const usualHidden = (width: number): number => Math.ceil((8 * width) / 3 / 32) * 32;
