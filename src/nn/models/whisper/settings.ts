/** The tokens that control a {@link Whisper} model, as `generation_config.json` and the tokenizer name them. */

/** The special tokens of a speech recognition model. */
export interface WhisperSettings {
  /** The token that begins a transcript. */
  readonly startToken: number;
  /** The token that ends a transcript; text tokens are below it. */
  readonly endToken: number;
  /** The token before text that precedes the transcript; undefined if the model has none. */
  readonly previousToken: number | undefined;
  /** The token that marks a window without speech; undefined if the model has none. */
  readonly noSpeechToken: number | undefined;
  /** The token that requests a transcript without timestamps. The next token id is the timestamp 0.00. */
  readonly noTimestampsToken: number;
  /** The token of each language code. Empty for a model of English only. */
  readonly languages: ReadonlyMap<string, number>;
  /** The tokens of the tasks. Empty for a model of English only. */
  readonly tasks: ReadonlyMap<"transcribe" | "translate", number>;
  /** Tokens that are never generated. */
  readonly suppressed: readonly number[];
  /** Tokens that do not begin a transcript. */
  readonly beginSuppressed: readonly number[];
  /** The latest time at which the first segment of a window may begin, in units of 20 ms. Default: no limit. */
  readonly latestStart: number | undefined;
  /** The attention heads that align words with audio. Undefined if the folder names none. */
  readonly alignmentHeads: readonly (readonly [layer: number, head: number])[] | undefined;
  /** The width of the median filter of word alignment. */
  readonly medianFilterWidth: number;
}
