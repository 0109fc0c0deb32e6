/** The description of a model that finds the mask of an object from points and boxes, as data. */
import type { FeedForwardDescription } from "../../decoder/description.ts";

/** An image encoder over patches, most of whose blocks attend within windows. */
export interface SamEncoderDescription {
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  readonly feedForward: FeedForwardDescription;
  /** Whether queries, keys and values have biases. */
  readonly bias: boolean;
  /** Added to the variances of norms. */
  readonly eps: number;
  /** Rows and columns of a window of patches. */
  readonly window: number;
  /** The blocks that attend to the whole image. */
  readonly unlimited: readonly number[];
  /** Whether patches have learned positions. */
  readonly positions: boolean;
  /** Whether scores of attention depend on the distances in rows and columns. */
  readonly distances: boolean;
}

/** A transformer between the tokens of prompts and the patches of an image. */
export interface SamDecoderDescription {
  readonly layers: number;
  readonly heads: number;
  readonly feedForward: FeedForwardDescription;
  readonly eps: number;
  /** The width is divided by this in the last attention of tokens to patches; by 2 in that of blocks. */
  readonly reduction: number;
  /** The number of masks for one prompt, besides the mask for prompts without ambiguity. */
  readonly masks: number;
  /** The width and the number of layers of the head that scores masks. */
  readonly scores: { readonly width: number; readonly layers: number };
}

/** A {@link Sam} model. */
export interface SamDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: string;
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
