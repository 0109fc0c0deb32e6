/** The sizes of a {@link DepthEstimator} as data. */
import type { VisionDescription } from "../description.ts";

/** A model that estimates the distance of each pixel: an image encoder, and convolutions over its states. */
export interface DepthDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: "depth_anything";
  /** The image encoder. */
  readonly vision: VisionDescription;
  /** Whether the encoder's final norm is applied to the states of all blocks that are read. */
  readonly normalizes: boolean;
  /** The blocks whose states are used, in order. */
  readonly levels: readonly DepthLevel[];
  /** The number of channels in which levels are added. */
  readonly fusionWidth: number;
  /** The number of channels of the head. */
  readonly headWidth: number;
  /**
   * `relative`: relative inverse distances, larger for nearer pixels; `metric`: distances in meters, up to a maximum.
   */
  readonly depth: { readonly kind: "relative" } | { readonly kind: "metric" };
  /** The factor of the results; for `metric`, the maximum distance in meters. */
  readonly scale: number;
}

/** One level: the states after some blocks, as planes. */
export interface DepthLevel {
  /** The number of blocks before the states. */
  readonly blocks: number;
  /** The number of channels. */
  readonly width: number;
  /** The factor by which the planes are resized. */
  readonly factor: number;
}
