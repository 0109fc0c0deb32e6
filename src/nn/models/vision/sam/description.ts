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
  /**
   * The factors by which attention between tokens and patches narrows its heads: in the blocks, and in the final
   * attention.
   */
  readonly reductions: readonly [blocks: number, last: number];
  /** The number of masks for an ambiguous prompt. There is one more mask, for unambiguous prompts. */
  readonly masks: number;
  /** The width and number of layers of the head that predicts the quality of masks. */
  readonly scores: { readonly width: number; readonly layers: number };
  /** Whether masks also read two finer grids of the image, and an additional token tells whether there is an object. */
  readonly readsFiner: boolean;
}

/** The settings that all models with prompts have. */
export interface PromptedDescription {
  /** The name of the architecture: Hugging Face's `model_type`. */
  readonly architecture: string;
  /** The number of channels in an image. */
  readonly channels: number;
  /** Height and width of images in pixels. */
  readonly image: number;
  /** The number of rows, and of columns, in the embedding of an image. */
  readonly side: number;
  /** The width of the embeddings of images and prompts. */
  readonly width: number;
  readonly decoder: SamDecoderDescription;
}

/** A {@link Sam} model. */
export interface SamDescription extends PromptedDescription {
  /** Height and width of a patch in pixels. */
  readonly patch: number;
  readonly encoder: SamEncoderDescription;
}

/** A stage of a {@link HieraDescription}. */
export interface HieraStageDescription {
  /** The size of a place's hidden state. */
  readonly width: number;
  /** The number of blocks. */
  readonly layers: number;
  /** The number of heads. */
  readonly heads: number;
  /** The side of the windows that attention is limited to, in places. */
  readonly window: number;
  /**
   * The side of the squares of places whose queries the first block replaces by their maximum, which shrinks the grid.
   * 1: none.
   */
  readonly pool: number;
}

/** An image encoder in stages: later ones have fewer and wider places. */
export interface HieraDescription {
  /** The convolution that computes patches. */
  readonly patch: { readonly size: number; readonly stride: number; readonly padding: number };
  /** The side of the grid of learned positions, which are resized to the grid of patches. */
  readonly positions: number;
  readonly stages: readonly HieraStageDescription[];
  /** The indices of the blocks, counted over all stages, that attend to the whole image. */
  readonly unlimited: readonly number[];
  /** The ratio of the hidden size of feed-forwards to the width. */
  readonly ratio: number;
  readonly activation: FeedForwardDescription["activation"];
  /** A small number that norms add to the variance. */
  readonly eps: number;
}

/** A {@link Sam2} model. */
export interface Sam2Description extends PromptedDescription {
  readonly encoder: HieraDescription;
  /** The convolutions that give all stages one width, and the stages to which the next coarser one is added. */
  readonly neck: { readonly kernel: number; readonly padding: number; readonly sums: readonly number[] };
  /**
   * When an unstable mask for unambiguous prompts is replaced by the best other mask: if the ratio of its areas above
   * `delta` and above −`delta` is less than `threshold`. Null: never.
   */
  readonly stability: { readonly delta: number; readonly threshold: number } | null;
}
