/** The sizes of a {@link Whisper} model as data. */
import type { FeedForwardDescription } from "../decoder/description.ts";

/** A speech recognition model with an audio encoder and a text decoder. */
export interface WhisperDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: "whisper";
  /** The number of tokens in the vocabulary. */
  readonly vocabularySize: number;
  /** The size of hidden states. */
  readonly width: number;
  /** The number of mel filters of the features: 80, or 128 for large-v3. */
  readonly melBins: number;
  /** The number of positions of the encoder; a window of audio has twice as many frames of 10 ms. */
  readonly audioPositions: number;
  /** The maximum number of tokens of the decoder, with the prompt. */
  readonly contextLength: number;
  /** The encoder's blocks. */
  readonly encoder: WhisperStack;
  /** The decoder's blocks. */
  readonly decoder: WhisperStack;
  /** The activation of the feed-forwards. */
  readonly activation: FeedForwardDescription["activation"];
  /** The dropout probability, in training, of the outputs of attention and feed-forward. */
  readonly dropout: number;
  /** The dropout probability, in training, of attention probabilities. */
  readonly attentionDropout: number;
}

/** The blocks of the encoder or the decoder. */
export interface WhisperStack {
  /** The number of blocks. */
  readonly layers: number;
  /** The number of heads of each attention. */
  readonly heads: number;
  /** The hidden size of the feed-forward. */
  readonly hidden: number;
}
