/** Encoders of images and texts, built from a {@link DualDescription}. */

import { tupleOf } from "../../../core/tuples.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { full } from "../../../ops/creation/full.ts";
import { normalize } from "../../../ops/distance/normalize.ts";
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import { eq } from "../../../ops/elementwise/comparison.ts";
import { exp } from "../../../ops/elementwise/exponential.ts";
import { takeAlongDim } from "../../../ops/indexing/gather.ts";
import { matmul } from "../../../ops/matmul/matmul.ts";
import { argmax } from "../../../ops/reduction/extrema.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { select } from "../../../ops/view/slice.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import type { PretrainedTokenizer } from "../../../text/pretrained_tokenizer.ts";
import { type LayerOptions, layerOptions, llamaInitialization, parameter } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import { Encoder } from "../encoder/encoder.ts";
import { placesIn } from "../loading/vision/names.ts";
import type { DualDescription } from "./description.ts";
import type { ImageProcessor } from "./processor/processor.ts";
import { VisionEncoder } from "./vision_encoder.ts";

/**
 * Computes e^weight · cosine + bias.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight`, `bias` | [1]; without a bias, it is null |
 */
export class SimilarityScale extends Module<[cosines: Tensor], Tensor> {
  readonly weight: Tensor;
  readonly bias: Tensor | null;

  constructor({ bias, ...options }: LayerOptions & { readonly bias: boolean }) {
    super();
    const constant = (value: number) =>
      parameter([1], (shape, { dtype = "float32" }) => full(shape, value, { dtype }), options);
    // CLIP's initial values; SigLIP's if there is a bias.
    this.weight = constant(Math.log(bias ? 10 : 1 / 0.07));
    this.bias = bias ? constant(-10) : null;
  }

  /** @param cosines any shape @returns the same shape */
  override forward(cosines: Tensor): Tensor {
    const scaled = mul(cosines, exp(this.weight));
    return this.bias ? add(scaled, this.bias) : scaled;
  }
}

/**
 * Encoders of images and texts whose vectors are in the same space, such as CLIP and SigLIP. `loadModel` returns it for
 * a folder of such a model.
 *
 * | parameter | shape |
 * |---|---|
 * | `vision. …` | see {@link VisionEncoder} |
 * | `text. …` | see {@link Encoder} |
 * | `textProjection.weight` | [vector width, text width] |
 * | `scale. …` | see {@link SimilarityScale} |
 *
 * Source: A. Radford et al., "Learning Transferable Visual Models From Natural Language Supervision", 2021; X. Zhai et
 * al., "Sigmoid Loss for Language Image Pre-Training", 2023.
 */
export class DualEncoder extends Module<[pixels: Tensor, tokens: Tensor], Tensor> {
  readonly vision: VisionEncoder;
  readonly text: Encoder;
  readonly textProjection: Linear | QuantizedLinear;
  readonly scale: SimilarityScale;
  readonly #description: DualDescription;
  /**
   * Where the weights were loaded from: `owner/name` for a model in Hugging Face's cache, else the path. Undefined for
   * a model that was not loaded.
   */
  origin: string | undefined = undefined;

  constructor(description: DualDescription, options: LayerOptions = {}) {
    super();
    const { vision, text, textProjection, sigmoid } = description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    this.#description = description;
    this.vision = new VisionEncoder(vision, shared);
    this.text = new Encoder(text, shared);
    this.textProjection = new Linear(text.width, textProjection.width, { ...shared, bias: textProjection.bias });
    this.scale = new SimilarityScale({ ...shared, bias: sigmoid });
  }

  /** The description that the model was built from. */
  get description(): DualDescription {
    return this.#description;
  }

  /** @internal Returns Hugging Face's names of the layers, by path in the model. */
  huggingFaceNames(): Map<string, string> {
    return new Map(placesIn(this).map(({ path, names }) => [path, names[0]]));
  }

  /** @internal Encoders have no cache. */
  get cacheElements(): number {
    return 0;
  }

  /** @internal The token embedding is not the output of a head. */
  get usesWholeEmbedding(): boolean {
    return false;
  }

  /** The width of the vectors. */
  get embeddingWidth(): number {
    return this.#description.textProjection.width;
  }

  /** Converts images to the model's input; undefined if the folder has no settings for it. */
  get processor(): ImageProcessor | undefined {
    return this.vision.processor;
  }

  set processor(processor: ImageProcessor | undefined) {
    this.vision.processor = processor;
  }

  /** The tokenizer of the model's folder; undefined if it has none. */
  get tokenizer(): PretrainedTokenizer | undefined {
    return this.text.tokenizer;
  }

  set tokenizer(tokenizer: PretrainedTokenizer | undefined) {
    this.text.tokenizer = tokenizer;
  }

  /**
   * Computes the score of each pair of an image and a text: scale · cosine, and in SigLIP plus a bias.
   *
   * @param pixels [images, channels, height, width]
   * @param tokens integers, [texts, tokens]
   * @returns [images, texts]
   *
   * @throws {ShapeError} @throws {ArgumentError} @throws {DTypeError} as {@link embedImages} and {@link embedTexts}.
   */
  override forward(pixels: Tensor, tokens: Tensor): Tensor {
    return tidy(() => this.score(this.embedImages(pixels), this.embedTexts(tokens)));
  }

  /**
   * Computes the score of each pair of an image's and a text's vector.
   *
   * @param images [images, embeddingWidth] @param texts [texts, embeddingWidth] @returns [images, texts]
   */
  score(images: Tensor, texts: Tensor): Tensor {
    return tidy(() => {
      const [first, second] = tupleOf(
        [images, texts].map((x) => normalize(x, { dim: 1 })),
        2,
      );
      return this.scale.forward(matmul(first, transpose(second, 0, 1)));
    });
  }

  /** Computes a vector for each image: see `embedImages` of {@link VisionEncoder}. @throws {ShapeError} */
  embedImages(pixels: Tensor): Tensor {
    return this.vision.embedImages(pixels);
  }

  /**
   * Computes a vector for each text.
   *
   * @param tokens integers, [texts, tokens], with the special tokens of the model's tokenizer. In CLIP, tokens after
   * the end token have no effect. SigLIP was trained on texts that are padded to the model's context
   * @returns [texts, embeddingWidth]
   *
   * @throws {ShapeError} @throws {ArgumentError} @throws {DTypeError} as `forward` of {@link Encoder}.
   */
  embedTexts(tokens: Tensor): Tensor {
    return tidy(() => this.textProjection.forward(this.pooled(tokens, this.text.hiddenStates(tokens))));
  }

  private pooled(tokens: Tensor, states: Tensor): Tensor {
    const pooling = this.#description.textPooling;
    if (pooling.kind === "padded") return select(states, 1, states.shape[1] - 1);
    const marks = pooling.kind === "end" ? toDType(eq(tokens, pooling.token), "int32") : tokens;
    const at = reshape(argmax(marks, { dim: 1 }), [-1, 1, 1]);
    return select(takeAlongDim(states, at, { dim: 1 }), 1, 0);
  }
}
