/** The symbols of a {@link Wav2Vec2} model, as `vocab.json` and `tokenizer_config.json` name them. */

/** How the outputs of a model become text, and how its input is scaled. */
export interface CtcSettings {
  /** The text of each symbol, by symbol index. */
  readonly symbols: readonly string[];
  /** The index of the blank, which separates repeated symbols. */
  readonly blank: number;
  /** The symbol between words. */
  readonly wordDelimiter: string;
  /** The text that replaces the delimiter, mostly a space. */
  readonly wordSeparator: string;
  /** Whether text is in lower case. */
  readonly lowerCase: boolean;
  /** Whether each recording is scaled to mean 0 and variance 1. */
  readonly normalizes: boolean;
}
