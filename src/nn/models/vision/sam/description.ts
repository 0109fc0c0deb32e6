/** Descriptions of models that find the mask of an object from points and boxes. */
import type { FeedForwardDescription } from "../../decoder/description.ts";

/** An image encoder over patches. Most of its blocks attend within windows. */
export interface SamEncoderDescription {
  /** The size of a patch's hidden state. */
  readonly width: number;
  /** The number of blocks. */
  readonly layers: number;
  /** The number of heads. */
  readonly heads: number;
  readonly feedForward: FeedForwardDescription;
  /** Whether queries, keys and values have biases. */
  readonly bias: boolean;
  /** A small number that norms add to the variance. */
  readonly eps: number;
  /** The side of a window, in patches. */
  readonly window: number;
  /** The indices of the blocks that attend to the whole image. */
  readonly unlimited: readonly number[];
  /** Whether patches have learned positions. */
  readonly positions: boolean;
  /** Whether attention scores depend on the relative position of patches, in rows and columns. */
  readonly distances: boolean;
}

/** A transformer in which a prompt's tokens and an image's patches attend to each other. */
export interface SamDecoderDescription {
  /** The number of blocks. */
  readonly layers: number;
  /** The number of heads. */
  readonly heads: number;
  readonly feedForward: FeedForwardDescription;
  /** A small number that norms add to the variance. */
  readonly eps: number;
  /** The factor by which the last attention of tokens to patches narrows its heads. Attention in blocks has 2. */
  readonly reduction: number;
  /** The number of masks for an ambiguous prompt. There is one more mask, for unambiguous prompts. */
  readonly masks: number;
  /** The width and number of layers of the head that predicts the quality of masks. */
  readonly scores: { readonly width: number; readonly layers: number };
}

/** A {@link Sam} model. */
export interface SamDescription {
  /** The name of the architecture: Hugging Face's `model_type`. */
  readonly architecture: string;
  /** The number of channels in an image. */
  readonly channels: number;
  /** Height and width of images in pixels. */
  readonly image: number;
  /** Height and width of a patch in pixels. */
  readonly patch: number;
  readonly encoder: SamEncoderDescription;
  /** The width of the embeddings of images and prompts. */
  readonly width: number;
  readonly decoder: SamDecoderDescription;
}
