/**
 * Descriptions of encoder-decoder models as data. {@link EncoderDecoder} is built from a description and does not know
 * architectures by name. `src/nn/models/loading/encoder_decoder` converts the settings in files to descriptions.
 */
import type { EncoderDescription } from "../encoder/description.ts";

/** A model that reads a text with an encoder and generates another with a decoder, such as T5, BART or Marian. */
export interface EncoderDecoderDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: string;
  /** The encoder. It has no head. */
  readonly encoder: EncoderDescription;
  /**
   * The decoder. Its blocks are an encoder's blocks plus cross-attention to the encoder's result. Tokens attend only to
   * themselves and earlier ones. Cross-attention and self-attention have the same sizes.
   */
  readonly decoder: EncoderDescription;
  /** Whether the decoder has a separate table of token embeddings. */
  readonly separateEmbeddings: boolean;
  /** Whether the head's weight is the decoder's token embedding. */
  readonly tied: boolean;
  /** Factor of the hidden states before the head. T5's is 1 / √width. Default 1. */
  readonly headScale?: number | undefined;
  /** Whether there is a fixed bias of the logits, as in Marian. */
  readonly logitsBias: boolean;
  /** The token that generated texts begin with. It is not part of the result. */
  readonly startToken: number;
  /** Whether, in training, the decoder's input for labels begins with their last token, as in mBART. Default false. */
  readonly shiftsLast?: boolean | undefined;
  /** The token that pads texts in a batch. */
  readonly paddingToken: number;
}
