/**
 * Descriptions of image encoders as data. {@link VisionEncoder} and {@link DualEncoder} are built from descriptions and
 * do not know architectures by name. The tables of `src/nn/models/loading/vision` convert the settings in files to
 * descriptions.
 */
import type { FeedForwardDescription, NormDescription } from "../decoder/description.ts";
import type { EncoderActivation, EncoderDescription, EncoderLayerDescription } from "../encoder/description.ts";

/** A transformer over the patches of an image. */
export interface VisionDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: string;
  /** The size of hidden states. */
  readonly width: number;
  /** All norms of the model. */
  readonly norm: NormDescription;
  /** The input of the first block. */
  readonly patches: PatchesDescription;
  /** Whether there is a norm of the embeddings. */
  readonly embeddingNorm: boolean;
  /** The blocks, in order; norms are before attention and feed-forward. */
  readonly layers: readonly EncoderLayerDescription[];
  /** Whether learned positions are also added after each block but the last. Default false. */
  readonly midPositions?: boolean | undefined;
  /** Learned biases of attention for distances on the grid, which blocks share, or each block has. Default: none. */
  readonly distances?: "shared" | "each" | undefined;
  /** The input of the final norm: all hidden states, or only the pooled state. `"none"`: there is no final norm. */
  readonly finalNorm: "states" | "pooled" | "none";
  /** How the hidden states of an image become one vector. */
  readonly pooling: VisionPooling;
  /** The width of a linear layer without bias, which projects the pooled state. Default: none. */
  readonly projection?: number | undefined;
  /** The classifier. Default: none; the model computes hidden states. */
  readonly head?: VisionHead | undefined;
}

/** The patches of an image, and the tokens before them, which have no place in the image. */
export interface PatchesDescription {
  /** The number of channels of an image. */
  readonly channels: number;
  /** Height and width of a patch in pixels. */
  readonly size: readonly [height: number, width: number];
  /** Height and width of the images that the model was trained on. Models accept other sizes. */
  readonly image: readonly [height: number, width: number];
  /** Whether the projection of patches has a bias. */
  readonly bias: boolean;
  /** Whether the projection is a linear layer of pixels with channels last, instead of a convolution. Default false. */
  readonly flat?: boolean | undefined;
  /** Whether the first token is a learned class token. */
  readonly classToken: boolean;
  /** Whether DeiT's distillation token follows. Default false. */
  readonly distillationToken?: boolean | undefined;
  /** The number of learned register tokens that follow, which have no position. Default 0. */
  readonly registers?: number | undefined;
  /** The number of learned detection tokens after the patches. These tokens have positions. Default 0. */
  readonly detectionTokens?: number | undefined;
  /** Learned positions, the base of rotary ones, or none. */
  readonly positions: LearnedGrid | { readonly kind: "rotary"; readonly base: number } | { readonly kind: "none" };
}

/**
 * Learned positions of patches, and of the class and distillation tokens. For images of another size, they are resized.
 */
export interface LearnedGrid {
  readonly kind: "learned";
  /** How positions are resized. */
  readonly mode: "bilinear" | "bicubic";
  /** Whether an antialiasing filter is applied when the grid shrinks. */
  readonly antialias: boolean;
}

/**
 * How the hidden states of an image become one vector: the first token's state, the mean of all tokens or of
 * the patches, an activation of a linear layer of the first token's state, or attention of a learned query.
 */
export type VisionPooling =
  | { readonly kind: "first" | "mean" | "patches" }
  | { readonly kind: "dense"; readonly width: number; readonly activation: EncoderActivation }
  | { readonly kind: "attention"; readonly heads: number; readonly feedForward: FeedForwardDescription };

/** A linear layer with a score for each label. */
export interface VisionHead {
  /** The number of labels. */
  readonly outputs: number;
  /**
   * The classified vector: the first token's state, the mean of the patches' states, both, or the pooled vector.
   * `"teacher"` is DeiT's mean of the scores of the class token and, with another layer, of the distillation token.
   */
  readonly of: "first" | "patches" | "firstAndPatches" | "pooled" | "teacher";
}

/** A detector of objects: an image encoder with detection tokens, each of which may find one object. */
export interface DetectorDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: string;
  /** The image encoder. */
  readonly vision: VisionDescription;
  /** The number of labels. */
  readonly labels: number;
}

/** Encoders of images and texts with vectors in the same space, such as CLIP. */
export interface DualDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: string;
  /** The image encoder. */
  readonly vision: VisionDescription;
  /** The text encoder. */
  readonly text: EncoderDescription;
  /** How the hidden states of a text become one vector. */
  readonly textPooling: TextPooling;
  /** The width and bias of a linear layer that projects the state of a text. */
  readonly textProjection: { readonly width: number; readonly bias: boolean };
  /** Whether scores have a learned bias, and whether a score is the probability of its pair, as in SigLIP. */
  readonly sigmoid: boolean;
}

/**
 * The token whose state is a text's vector: the first `end` token; the token with the largest number, in older CLIP
 * models; or the last one of texts that are padded to the model's context.
 */
export type TextPooling =
  | { readonly kind: "end"; readonly token: number }
  | { readonly kind: "largest" }
  | { readonly kind: "padded"; readonly padding: number };
