/** The sizes of a {@link Wav2Vec2} model as data. */
import type { NormDescription } from "../decoder/description.ts";
import type { EncoderActivation, EncoderLayerDescription } from "../encoder/description.ts";

/** A model of speech with the scores of symbols for each frame of about 20 ms, or of labels for a recording. */
export interface Wav2Vec2Description {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: "wav2vec2" | "hubert" | "wavlm";
  /** The number of symbols, with the blank; of labels for a classifier. */
  readonly vocabularySize: number;
  /** The classifier of recordings. Default: none; the head has the scores of symbols. */
  readonly classifier?: SpeechClassifierDescription | undefined;
  /** The size of hidden states. */
  readonly width: number;
  /** The convolutions over samples, in order. */
  readonly convolutions: readonly ConvolutionDescription[];
  /** Whether the convolutions have biases. */
  readonly convolutionBias: boolean;
  /**
   * The norm after convolutions: over time for each channel, only after the first convolution; or for each frame, after
   * all of them.
   */
  readonly convolutionNorm: "group" | "layer";
  /** The activation after each convolution. */
  readonly convolutionActivation: EncoderActivation;
  /** Whether a norm precedes the projection of frames to hidden states. */
  readonly projectionNorm: boolean;
  /** The grouped convolution over hidden states whose result is added to them as positions. */
  readonly positions: {
    readonly kernel: number;
    readonly groups: number;
    readonly activation: EncoderActivation;
  };
  /** The number of buckets of distances whose scores are learned, and the longest distance. Default: none. */
  readonly distances?: { readonly buckets: number; readonly longest: number } | undefined;
  /** All norms but those of the convolutions. */
  readonly norm: NormDescription;
  /** Whether norms are before attention and feed-forward, plus one after the last block, instead of after them. */
  readonly normPlace: "before" | "after";
  /** The number of blocks. */
  readonly layers: number;
  /** One block. */
  readonly layer: EncoderLayerDescription;
}

/** A convolution over time. */
export interface ConvolutionDescription {
  /** The number of channels of the result. */
  readonly width: number;
  /** The number of samples or frames that a result depends on. */
  readonly kernel: number;
  /** The distance between results, in samples or frames of the input. */
  readonly stride: number;
}

/** A classifier of the mean of projected hidden states. */
export interface SpeechClassifierDescription {
  /** The width of the projection. */
  readonly width: number;
  /** Whether hidden states are a learned mean over all blocks, instead of those of the last one. */
  readonly weighted: boolean;
}
