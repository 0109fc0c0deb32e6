/** A classifier that reads the text with an encoder and a decoder, such as BART. */
import { tupleOf } from "../../../core/tuples.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../layers/initialization.ts";
import type { HeadDescription } from "../encoder/description.ts";
import { Encoder, type EncoderInputs, statesAt } from "../encoder/encoder.ts";
import type { EncoderDecoderName } from "../loading/encoder_decoder/architectures.ts";
import { classifierPlaces } from "../loading/encoder_decoder/names.ts";
import { CrossDecoder } from "./decoder.ts";
import type { EncoderDecoderDescription } from "./description.ts";
import { EncodedTexts } from "./encoded.ts";

/** The description of an {@link EncoderDecoderClassifier}. */
export interface ClassifierDescription extends EncoderDecoderDescription {
  readonly head: HeadDescription;
  /** The token that ends a text. The head reads the decoder's state of the last one. */
  readonly endToken: number;
}

/**
 * An {@link Encoder} for classes of texts whose hidden states are those of a decoder that reads the same text. Source:
 * M. Lewis et al., "BART: Denoising sequence-to-sequence pre-training", 2020, section 3.1.
 *
 * | parameter | shape |
 * |---|---|
 * | `embeddings. …`, `blocks.0. …`, `head. …` | see {@link Encoder} |
 * | `crossDecoder. …` | see {@link CrossDecoder} |
 */
export class EncoderDecoderClassifier extends Encoder {
  readonly crossDecoder: CrossDecoder;
  readonly #description: ClassifierDescription;

  constructor(description: ClassifierDescription, options: LayerOptions = {}) {
    const { encoder, decoder, head } = description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    super({ ...encoder, head }, shared);
    this.#description = description;
    this.crossDecoder = new CrossDecoder(decoder, description.separateEmbeddings, shared);
  }

  /** @param tokens integers, [batch, tokens] @returns [batch, tokens, width] of the decoder's last block */
  override hiddenStates(tokens: Tensor, inputs?: EncoderInputs): Tensor {
    return tidy(() => {
      const encoded = new EncodedTexts(super.hiddenStates(tokens, inputs), inputs?.lengths);
      const embedding = this.embeddings!.token;
      const shifted = this.shifted(tokens, inputs?.lengths);
      return this.crossDecoder.forward(shifted, { encoded, cache: undefined, embedding });
    });
  }

  /** @internal */
  override huggingFaceNames(): Map<string, string> {
    const places = classifierPlaces(this.#description.architecture as EncoderDecoderName, this.#description);
    return new Map(places.map(({ path, names }) => [path, names[0]]));
  }

  /** @internal Returns the state of the last end token of each text. */
  protected override pool(states: Tensor, _pooling: unknown, tokens: Tensor, lengths?: readonly number[]): Tensor {
    const { endToken } = this.#description;
    const places = rowsOf(tokens, lengths).map((row) => Math.max(0, row.lastIndexOf(endToken)));
    return statesAt(states, places);
  }

  /** Returns the decoder's input: the start token, or mBART's last token, then all tokens but the last. */
  private shifted(tokens: Tensor, lengths: readonly number[] | undefined): Tensor {
    const { startToken, shiftsLast } = this.#description;
    const [batch, count] = tupleOf(tokens.shape, 2);
    const values = new Int32Array(batch * count);
    for (const [row, numbers] of rowsOf(tokens, lengths).entries()) {
      const first = shiftsLast ? numbers.at(-1)! : startToken;
      values.set([first, ...numbers].slice(0, count), row * count);
    }
    return tensor(values, { shape: [batch, count] });
  }
}

/** Returns the tokens of each text without padding. */
function rowsOf(tokens: Tensor, lengths: readonly number[] | undefined): number[][] {
  const [batch, count] = tupleOf(tokens.shape, 2);
  const values: readonly number[] = Array.from<number | bigint, number>(tokens.dataSync(), Number);
  return Array.from({ length: batch }, (_, row) => values.slice(row * count, row * count + (lengths?.[row] ?? count)));
}
