/** The options of `generateBatch`, their checks, and their defaults. */
import { ArgumentError } from "../../../core/errors.ts";
import { aNumber, choice, either, flag, listOf, someNumber } from "../../../core/kinds.ts";
import { count, finite, type NumberRule } from "../../../core/options.ts";
import { named, type Parsed } from "../../../core/parameters.ts";
import { definedOf } from "../../../core/records.ts";
import { Generator } from "../../../random/generator.ts";
import type { BatchDefaults, EarlyStopping } from "../../models/encoder_decoder/texts.ts";
import { type GenerateOptions, generateParameters, type Sampling } from "../options.ts";

/** Options of {@link generateBatch}. */
export interface GenerateBatchOptions
  extends Pick<
    GenerateOptions,
    | "maxTokens"
    | "stopTokens"
    | "topK"
    | "topP"
    | "minP"
    | "temperature"
    | "repetitionPenalty"
    | "seed"
    | "generator"
    | "signal"
  > {
  /** The number of beams: the continuations that beam search keeps for each text. Default 1: greedy decoding. */
  readonly numBeams?: number | undefined;
  /** The number of results for each text; at most `numBeams`, or with a temperature any number. Default 1. */
  readonly numReturnSequences?: number | undefined;
  /**
   * The score of a finished text is Σ ln p / length ^ lengthPenalty. Values above 0 favor long texts. Default 1.
   */
  readonly lengthPenalty?: number | undefined;
  /**
   * When beam search of a text ends after `numBeams` results: `true`: immediately; `false`: when the best running beam,
   * at its current length, is worse than all results; `"never"`: when no longer text can be better. Default false.
   */
  readonly earlyStopping?: EarlyStopping | undefined;
  /** No sequence of this many tokens occurs twice in a text. Default 0: no limit. */
  readonly noRepeatNgramSize?: number | undefined;
  /** The minimum number of tokens before a stop token. Default 0. */
  readonly minTokens?: number | undefined;
  /** The first token of each generated text, such as a language. Default: none. */
  readonly forcedBeginToken?: number | undefined;
  /** The last token of a text that reaches `maxTokens`. Default: none. */
  readonly forcedEndToken?: number | undefined;
  /** Sequences of tokens that are not generated. Default: none. */
  readonly badWords?: readonly (readonly number[])[] | undefined;
  /** The maximum number of texts in a batch. Default 16. */
  readonly batch?: number | undefined;
}

/** An upper bound, far above what any search needs. */
const MOST_ROWS = 1024;
const rowCount: NumberRule = {
  holds: (value) => count.holds(value) && value <= MOST_ROWS,
  expected: `a whole number from 1 to ${MOST_ROWS}`,
};

const wholeFromZero: NumberRule = {
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
};

const { temperature, topK, topP, minP, repetitionPenalty, maxTokens, stopTokens, seed, generator, signal } =
  generateParameters;

/** @internal The named options of `generateBatch`. Options without a default here have the model's. */
export const batchOptions = {
  stopTokens,
  seed,
  generator,
  signal,
  topP,
  minP,
  maxTokens: named(maxTokens.kind),
  temperature: named(temperature.kind),
  topK: named(topK.kind),
  repetitionPenalty: named(repetitionPenalty.kind),
  numBeams: named(aNumber(rowCount)),
  numReturnSequences: named(aNumber(rowCount), 1),
  lengthPenalty: named(aNumber(finite)),
  earlyStopping: named(either(flag, choice("never"))),
  noRepeatNgramSize: named(aNumber(wholeFromZero)),
  minTokens: named(aNumber(wholeFromZero)),
  forcedBeginToken: named(aNumber(wholeFromZero)),
  forcedEndToken: named(aNumber(wholeFromZero)),
  badWords: named(listOf(listOf(someNumber, "a list of tokens"), "a list of lists of tokens")),
  batch: named(aNumber(count), 16),
} as const;

/** @internal Checked options with defaults filled in. */
export interface BatchSettings {
  readonly maxTokens: number;
  readonly minTokens: number;
  readonly stopTokens: ReadonlySet<number>;
  readonly numBeams: number;
  readonly numReturnSequences: number;
  readonly lengthPenalty: number;
  readonly earlyStopping: EarlyStopping;
  readonly noRepeatNgramSize: number;
  readonly repetitionPenalty: number;
  readonly forcedBeginToken: number | undefined;
  readonly forcedEndToken: number | undefined;
  readonly badWords: readonly (readonly number[])[];
  readonly sampling: Sampling;
  readonly generator: Generator;
  readonly signal: AbortSignal | undefined;
  readonly batch: number;
}

const usual = {
  maxTokens: 256,
  minTokens: 0,
  numBeams: 1,
  lengthPenalty: 1,
  earlyStopping: false,
  noRepeatNgramSize: 0,
  repetitionPenalty: 1,
  badWords: [],
  temperature: 0,
  topK: Infinity,
} as const satisfies BatchDefaults & GenerateBatchOptions;

/** Returns the options that are given. */
const givenOf = <O extends object>(options: O): Partial<O> => definedOf(options);

/**
 * @internal Fills in the defaults of the model, then the usual ones.
 *
 * @throws {ArgumentError} for options that contradict each other, and tokens that are not in the vocabulary.
 */
export function batchSettings(
  operation: string,
  options: Parsed<typeof batchOptions>,
  defaults: BatchDefaults,
  vocabularySize: number,
): BatchSettings {
  const { seed, generator, topP, minP, signal, ...rest } = options;
  const merged = { ...usual, ...givenOf(defaults), ...givenOf(rest) } as typeof usual &
    BatchDefaults & { readonly numReturnSequences: number; readonly batch: number };
  const { temperature, topK, ...settings } = merged as unknown as BatchSettings &
    Pick<Sampling, "temperature" | "topK">;
  const fail = (code: string, message: string) => new ArgumentError(operation, code, message);
  if (seed !== undefined && generator !== undefined)
    throw fail("twoSources", "expected a seed or a generator, got both; pass one of them");
  const { numBeams, numReturnSequences: results } = settings;
  if (temperature > 0 && numBeams > 1)
    throw fail("sampledBeams", "beam search does not sample; expected numBeams: 1 or temperature: 0");
  if (temperature === 0 && results > numBeams)
    throw fail(
      "tooManyResults",
      `expected numReturnSequences to be at most numBeams (${numBeams}), got ${results}; or pass a temperature`,
    );
  const tokens = [settings.forcedBeginToken ?? 0, settings.forcedEndToken ?? 0, ...settings.badWords.flat()];
  const wrong = tokens.find((token) => !(Number.isInteger(token) && token >= 0 && token < vocabularySize));
  if (wrong !== undefined)
    throw fail("notInVocabulary", `expected tokens from 0 to ${vocabularySize - 1}, got ${wrong}`);
  const penalties = { repetitionPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, logitBias: new Map() };
  return {
    ...settings,
    signal,
    stopTokens: new Set(settings.stopTokens),
    sampling: { ...penalties, temperature, topK, topP, minP },
    generator: generator ?? new Generator(seed),
  };
}
