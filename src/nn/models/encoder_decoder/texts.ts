/** What an {@link EncoderDecoder} needs to read and write texts, besides its tokenizer. */
import type { BatchDefaults } from "../../generation/batch/options.ts";

/** A task of T5, such as `translation_en_to_de`. */
export interface TextTask {
  /** The text that precedes each text. */
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
