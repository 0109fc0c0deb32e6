/** The sizes of a {@link SemanticSegmenter} as data. */
import type { FeedForwardDescription } from "../../decoder/description.ts";

/** A model that predicts a label for each pixel. Patches grow from one stage of its encoder to the next. */
export interface SegmenterDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: "segformer";
  /** The number of channels of an image. */
  readonly channels: number;
  /** The stages, in order. */
  readonly stages: readonly SegmenterStageDescription[];
  /** The activation of the feed-forwards. */
  readonly activation: FeedForwardDescription["activation"];
  /** The width to which the states of all stages are projected. */
  readonly decoderWidth: number;
  /** The number of labels. */
  readonly labels: number;
}

/** The blocks with one size of patches. */
export interface SegmenterStageDescription {
  /** The size of hidden states. */
  readonly width: number;
  /** The number of blocks. */
  readonly layers: number;
  /** The number of heads of attention. */
  readonly heads: number;
  /** The side of the overlapping patches. */
  readonly patch: number;
  /** The distance between adjacent patches. */
  readonly stride: number;
  /** The factor by which the sides of the grid of keys and values are reduced. */
  readonly reduction: number;
  /** The hidden size of the feed-forward. */
  readonly hidden: number;
}
