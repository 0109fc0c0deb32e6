/** Settings with which an {@link EncoderDecoder} reads and writes texts, besides its tokenizer. */

/** When beam search ends: see the option `earlyStopping` of `nn.generateBatch`. */
export type EarlyStopping = boolean | "never";

/** Defaults of the options of `nn.generateBatch`, which a model's files give. */
export interface BatchDefaults {
  readonly maxTokens?: number | undefined;
  readonly minTokens?: number | undefined;
  readonly stopTokens?: Iterable<number> | undefined;
  readonly numBeams?: number | undefined;
  readonly lengthPenalty?: number | undefined;
  readonly earlyStopping?: EarlyStopping | undefined;
  readonly noRepeatNgramSize?: number | undefined;
  readonly repetitionPenalty?: number | undefined;
  readonly forcedBeginToken?: number | undefined;
  readonly forcedEndToken?: number | undefined;
  readonly badWords?: readonly (readonly number[])[] | undefined;
}

/** A task of T5, such as `translation_en_to_de`. */
export interface TextTask {
  /** The text to put before each input. */
  readonly prefix: string;
  /** Defaults of the options of generation. */
  readonly defaults: BatchDefaults;
}

/** The languages and tasks of a model. */
export interface TextSettings {
  /** Whether the language follows the text and its end token, as in mBART-cc25. Default: it precedes the text. */
  readonly languageLast: boolean;
  /** The languages of a model that translates one pair. */
  readonly source: string | undefined;
  readonly target: string | undefined;
  /** Tasks by name. */
  readonly tasks: ReadonlyMap<string, TextTask>;
}
