/** Runs the rows of a batch through a model with a cache, one token at a time. */
import { noGrad } from "../../../autograd/modes.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { logSoftmax } from "../../../ops/softmax/softmax.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import type { KeyValueCache } from "../../cache/cache.ts";
import { inEvaluation } from "../../layers/module.ts";
import type { EncodedTexts } from "../../models/encoder_decoder/encoded.ts";
import { EncoderDecoder } from "../../models/encoder_decoder/encoder_decoder.ts";
import type { LanguageModel } from "../../models/language_model.ts";

/** @internal A model that generates a batch of texts. */
export type GeneratingModel = LanguageModel | EncoderDecoder;

/** @internal */
export class Rows implements Disposable {
  private readonly cache: KeyValueCache;
  private readonly encoded: EncodedTexts | undefined;
  private padding: readonly number[] | undefined;

  /** @param texts the prompts, or the texts that the encoder reads */
  constructor(
    private readonly model: GeneratingModel,
    private readonly texts: readonly (readonly number[])[],
    private readonly isLogarithm: boolean,
  ) {
    const lengths = texts.map(({ length }) => length);
    const longest = Math.max(...lengths);
    this.cache = model.newCache();
    if (model instanceof EncoderDecoder) {
      const tokens = padded(texts, longest, model.description.paddingToken, "end");
      this.encoded = noGrad(() => inEvaluation(model, () => model.encode(tokens, { lengths })));
      tokens.dispose();
    } else this.padding = lengths.some((length) => length < longest) ? lengths.map((n) => longest - n) : undefined;
  }

  /** Returns scores of the first token: a row for each text. */
  first(): Promise<Float32Array[]> {
    const { model, texts } = this;
    if (model instanceof EncoderDecoder) return this.run(texts.map(() => [model.description.startToken]));
    return this.run(texts, Math.max(...texts.map(({ length }) => length)));
  }

  /** Returns scores of the next token of each row. @param origins the row that each row continues */
  next(tokens: readonly number[], origins: readonly number[]): Promise<Float32Array[]> {
    if (origins.length !== this.size || origins.some((row, at) => row !== at)) {
      noGrad(() => this.cache.reorder(origins));
      this.padding = this.padding && origins.map((row) => this.padding![row]);
    }
    return this.run(tokens.map((token) => [token]));
  }

  /** The number of rows of the last call. */
  private size = 0;

  private async run(rows: readonly (readonly number[])[], longest = 1): Promise<Float32Array[]> {
    const { model, cache, encoded, padding } = this;
    this.size = rows.length;
    using scores = tidy(() =>
      noGrad(() =>
        inEvaluation(model, () => {
          const tokens = padded(rows, longest, 0, "start");
          const logits = encoded
            ? (model as EncoderDecoder).decode(tokens, encoded, { cache, lastOnly: true })
            : (model as LanguageModel).forward(tokens, { cache, lastOnly: true, padding });
          const wide = toDType(reshape(logits, [rows.length, -1]), "float32");
          return this.isLogarithm ? logSoftmax(wide, -1) : wide;
        }),
      ),
    );
    const values = await scores.data();
    const width = values.length / rows.length;
    return rows.map((_, row) => values.slice(row * width, (row + 1) * width));
  }

  [Symbol.dispose](): void {
    this.cache.dispose();
    this.encoded?.dispose();
  }
}

function padded(
  rows: readonly (readonly number[])[],
  longest: number,
  padding: number,
  side: "start" | "end",
): Tensor<"int32"> {
  const tokens = new Int32Array(rows.length * longest).fill(padding);
  for (const [row, list] of rows.entries())
    tokens.set(list, row * longest + (side === "start" ? longest - list.length : 0));
  return tensor(tokens, { shape: [rows.length, longest] });
}
