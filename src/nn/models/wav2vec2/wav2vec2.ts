import { lastElement } from "../../../core/collections.ts";
import { DTypeError, ShapeError } from "../../../core/errors.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import { stack } from "../../../ops/join/cat.ts";
import { mean } from "../../../ops/reduction/mean.ts";
import { sum } from "../../../ops/reduction/sum.ts";
import { softmax } from "../../../ops/softmax/softmax.ts";
import { flatten } from "../../../ops/view/flatten.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { unsqueeze } from "../../../ops/view/squeeze.ts";
import { isFloat } from "../../../tensor/dtype.ts";
import { expectTensor } from "../../../tensor/kinds.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import { Embedding } from "../../layers/embedding.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import { newNorm } from "../decoder/block.ts";
import { EncoderBlock } from "../encoder/block.ts";
import { bucketScores } from "../encoder/distances.ts";
import type { EncoderLabels } from "../encoder/labels.ts";
import type { Wav2Vec2Description } from "./description.ts";
import { ConvolutionalPositions, SpeechConvolution } from "./feature_encoder.ts";
import type { CtcSettings } from "./settings.ts";

/**
 * A speech model of the wav2vec 2.0 family, such as wav2vec2, HuBERT and WavLM: convolutions over samples, a
 * transformer, and a head. A CTC head has the scores of each symbol for each frame of about 20 ms, a classifier those
 * of labels for the whole recording. `loadModel` returns it for a folder of such a model; `transcribe` and
 * `classifyAudio` run it.
 *
 * | parameter | shape |
 * |---|---|
 * | `convolutions.0. …` | see {@link SpeechConvolution} |
 * | `projectionNorm.weight` | [channels]; null if there is none |
 * | `projection.weight` | [width, channels] |
 * | `positions. …` | see {@link ConvolutionalPositions} |
 * | `distanceEmbedding.weight` | [buckets, heads] of WavLM; null for others |
 * | `norm.weight` | [width], before the first block, or after the last one |
 * | `blocks.0. …` | see {@link EncoderBlock} |
 * | `layerWeights.weight` | [1, blocks + 1] of a classifier with weighted blocks; null for others |
 * | `projector.weight` | [classifier.width, width] of a classifier; null for others |
 * | `head.weight` | [vocabularySize, width], or [vocabularySize, classifier.width] |
 *
 * Sources: A. Baevski et al., "wav2vec 2.0: A Framework for Self-Supervised Learning of Speech Representations", 2020;
 * W.-N. Hsu et al., "HuBERT", 2021; S. Chen et al., "WavLM", 2022; A. Graves et al., "Connectionist Temporal
 * Classification", 2006.
 */
export class Wav2Vec2 extends Module<[samples: Tensor], Tensor> {
  readonly convolutions: readonly SpeechConvolution[];
  readonly projectionNorm: Normalization | null;
  readonly projection: Linear | QuantizedLinear;
  readonly positions: ConvolutionalPositions;
  readonly distanceEmbedding: Embedding | null;
  readonly norm: Normalization;
  readonly blocks: readonly EncoderBlock[];
  readonly layerWeights: Embedding | null;
  readonly projector: Linear | QuantizedLinear | null;
  readonly head: Linear | QuantizedLinear;
  /** The names of a classifier's results, and how they become probabilities; undefined for other models. */
  labels: EncoderLabels | undefined = undefined;
  /** Where the weights were loaded from: `owner/name` for a model in Hugging Face's cache, else the path. */
  origin: string | undefined = undefined;
  readonly #description: Wav2Vec2Description;
  #settings: CtcSettings | undefined;

  constructor(description: Wav2Vec2Description, options: LayerOptions = {}) {
    super();
    const { width, norm, normPlace, layer, layers, convolutions, vocabularySize, projectionNorm } = description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    const channels = lastElement(convolutions).width;
    this.#description = description;
    this.convolutions = convolutions.map((_, index) => new SpeechConvolution(description, index, shared));
    this.projectionNorm = projectionNorm ? newNorm(channels, norm, shared) : null;
    this.projection = new Linear(channels, width, shared);
    this.positions = new ConvolutionalPositions(description, shared);
    const { distances } = description;
    this.distanceEmbedding = distances ? new Embedding(distances.buckets, layer.attention.heads, shared) : null;
    this.norm = newNorm(width, norm, shared);
    this.blocks = Array.from({ length: layers }, () => new EncoderBlock({ ...shared, width, norm, normPlace, layer }));
    const { classifier } = description;
    this.layerWeights = classifier?.weighted ? new Embedding(1, layers + 1, shared) : null;
    this.projector = classifier ? new Linear(width, classifier.width, shared) : null;
    this.head = new Linear(classifier?.width ?? width, vocabularySize, shared);
  }

  /** The description that the model was built from. */
  get description(): Wav2Vec2Description {
    return this.#description;
  }

  /** The symbols; undefined for a model that was not loaded, or whose folder has no `vocab.json`. */
  get settings(): CtcSettings | undefined {
    return this.#settings;
  }

  set settings(settings: CtcSettings | undefined) {
    this.#settings = settings;
  }

  /** @internal There is no cache. */
  get cacheElements(): number {
    return 0;
  }

  /** @internal There is no token embedding. */
  get usesWholeEmbedding(): boolean {
    return true;
  }

  /** The number of symbols, or of labels. */
  get vocabularySize(): number {
    return this.#description.vocabularySize;
  }

  /** The distance between frames in samples: the product of the convolutions' strides. */
  get samplesPerFrame(): number {
    return this.#description.convolutions.reduce((product, { stride }) => product * stride, 1);
  }

  /** Returns the number of frames for a number of samples; 0 if they are too few. */
  framesOf(samples: number): number {
    const after = (count: number, { kernel, stride }: { readonly kernel: number; readonly stride: number }) =>
      Math.max(0, Math.floor((count - kernel) / stride) + 1);
    return this.#description.convolutions.reduce(after, samples);
  }

  /**
   * Computes the score of each symbol for each frame, or of each label.
   *
   * @param samples floats at 16 kHz, [batch, samples]; most models require mean 0 and variance 1
   * @returns [batch, framesOf(samples), vocabularySize], or [batch, vocabularySize]
   *
   * @throws {ShapeError} for other shapes, and for samples of less than one frame. @throws {DTypeError} for samples
   * that are not floats.
   */
  override forward(samples: Tensor): Tensor {
    const { projector } = this;
    return tidy(() => {
      if (!projector) return this.head.forward(this.hiddenStates(samples));
      const states = this.layerWeights ? this.weightedStates(samples, this.layerWeights) : this.hiddenStates(samples);
      return this.head.forward(mean(projector.forward(states), { dim: 1 }));
    });
  }

  /**
   * Computes the hidden states of the last block.
   *
   * @param samples as those of {@link forward}
   * @returns [batch, framesOf(samples), width]
   *
   * @throws {ShapeError} @throws {DTypeError} as {@link forward}.
   */
  hiddenStates(samples: Tensor): Tensor {
    return tidy(() => {
      const last = lastElement(this.statesAfter(samples));
      return this.#description.normPlace === "before" ? this.norm.forward(last) : last;
    });
  }

  /** Returns the hidden states before the first block, and after each block. */
  private statesAfter(samples: Tensor): Tensor[] {
    this.checkSamples(samples);
    const given = unsqueeze(toDType(samples, this.convolutions[0].convolution.weight.dtype), 1);
    const frames = transpose(
      this.convolutions.reduce((x, layer) => layer.forward(x), given),
      1,
      2,
    );
    const projected = this.projection.forward(this.projectionNorm ? this.projectionNorm.forward(frames) : frames);
    let x: Tensor = add(projected, this.positions.forward(projected));
    if (this.#description.normPlace === "after") x = this.norm.forward(x);
    const inputs = { mask: undefined, bias: this.distanceScores(x.shape[1]), distances: undefined };
    const states = [x];
    for (const block of this.blocks) {
      x = block.forward(x, inputs);
      states.push(x);
    }
    return states;
  }

  /** Returns Σ softmax(w)ᵢ · statesᵢ. The last states are not normalized, as in version 5 of `transformers`. */
  private weightedStates(samples: Tensor, { weight }: Embedding): Tensor {
    const states = stack(this.statesAfter(samples), -1);
    return sum(mul(states, softmax(flatten(weight, 0), { dim: 0 })), { dim: -1 });
  }

  /** Returns WavLM's scores of distances, [1, heads, frames, frames]. */
  private distanceScores(frames: number): Tensor | undefined {
    const { distances } = this.#description;
    if (!distances || !this.distanceEmbedding) return undefined;
    const { buckets: rows, longest } = distances;
    return bucketScores(this.distanceEmbedding, { rows, longest, queries: frames, keys: frames, bothWays: true });
  }

  private checkSamples(samples: Tensor): void {
    expectTensor("Wav2Vec2", "samples", samples);
    if (!isFloat(samples.dtype))
      throw new DTypeError("Wav2Vec2", "notFloat", `expected samples to be floats, got ${samples.describe()}`);
    if (samples.rank === 2 && this.framesOf(samples.shape[1]) > 0) return;
    throw new ShapeError(
      "Wav2Vec2",
      "wrongShape",
      `expected samples to be [batch, samples] with at least one frame, got ${samples.describe()}`,
    );
  }
}
