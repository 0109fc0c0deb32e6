/** Descriptions of vision-language models as data: a tower, a projector, a decoder, and the places of images. */
import type {
  DecoderDescription,
  FeedForwardDescription,
  LayerDescription,
  NormDescription,
} from "../decoder/description.ts";
import type { VisionDescription } from "../vision/description.ts";

/** A language model that reads images. */
export interface VisionLanguageDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: string;
  /** The language model. */
  readonly text: DecoderDescription;
  /** The token that is replaced by the features of an image. */
  readonly imageToken: number;
  /** Whether the tokens of an image attend to later ones of the same image. Default false. */
  readonly bidirectional?: boolean | undefined;
  /** The encoder of images. */
  readonly tower: PatchTowerDescription | EncoderTowerDescription;
}

/** An image encoder whose hidden states are projected to the language model. */
export interface EncoderTowerDescription {
  readonly kind: "encoder";
  /** The image encoder. */
  readonly encoder: VisionDescription;
  /** The number of blocks to apply: see `VisionEncoder.hiddenStates`. Default: all blocks and the final norm. */
  readonly blocks?: number | undefined;
  /** The number of tokens, such as a class token, to drop before the patches. */
  readonly skip: number;
  /** The projection to the language model. */
  readonly projector: ProjectorDescription;
}

/** A projection of hidden states: output(activation(hidden(norm(gathered)))). */
export interface ProjectorDescription {
  /**
   * Squares of `size` · `size` patches become one token: their mean, or all their values. Default: each hidden state
   * is a token.
   */
  readonly gather?: { readonly kind: "mean" | "values"; readonly size: number } | undefined;
  /** The norm before the projection. Default: none. */
  readonly norm?: NormDescription | undefined;
  /** A linear layer and an activation before the last linear layer. Default: none. */
  readonly hidden?: { readonly width: number; readonly activation: FeedForwardDescription["activation"] } | undefined;
  /** Whether linear layers have biases. */
  readonly bias: boolean;
  /** The size of the features. */
  readonly outputWidth: number;
}

/**
 * An image encoder for images of any size, which it reads as a sequence of patches. Queries and keys rotate by the row
 * and the column of their patch.
 *
 * Source: P. Wang et al., "Qwen2-VL", 2024; S. Bai et al., "Qwen2.5-VL technical report", 2025.
 */
export interface PatchTowerDescription {
  readonly kind: "patches";
  /** The number of values of a patch: channels · frames · height · width. */
  readonly patchWidth: number;
  /** The size of hidden states. */
  readonly width: number;
  /** All norms of the tower. */
  readonly norm: NormDescription;
  /** The blocks, in order. */
  readonly layers: readonly LayerDescription[];
  /** The base of the rotation frequencies. */
  readonly base: number;
  /** The number of rows and of columns of patches that become one token. */
  readonly merge: number;
  /** The size of the features. */
  readonly outputWidth: number;
  /** The side of an attention window, in tokens. Default: an image is one window. */
  readonly window?: number | undefined;
  /** The blocks that attend to the whole image instead of windows. Default: none. */
  readonly unlimited?: readonly number[] | undefined;
  /** Whether the projection of patches has a bias. Default false. */
  readonly patchBias?: boolean | undefined;
  /**
   * The number of rows of the square table of learned positions, which are interpolated to the grid of an image.
   * Default: no learned positions.
   */
  readonly positionRows?: number | undefined;
  /**
   * The outputs of these blocks are features too. They are added to the outputs of the language model's first blocks.
   * Default: none.
   *
   * Source: L. Meng et al., "DeepStack", 2024.
   */
  readonly deep?: readonly number[] | undefined;
}
