/** The options of `generate` and their checks. */
import { ArgumentError } from "../../core/errors.ts";
import { Generator } from "../../random/generator.ts";

/** How the next token is sampled from logits. */
export interface SamplingOptions {
  /** Divides the logits: below 1 likely tokens become likelier; 0 always takes the most likely one. Default 1. */
  readonly temperature?: number | undefined;
  /** Samples from this many most likely tokens. Default: all. */
  readonly topK?: number | undefined;
  /** Samples from the fewest most likely tokens whose probabilities sum to at least this; in (0, 1]. Default 1. */
  readonly topP?: number | undefined;
  /** Positive logits of previous tokens are divided by it, negative ones multiplied; above 0. Default 1. */
  readonly repetitionPenalty?: number | undefined;
}

/** Options of {@link generate}. */
export interface GenerateOptions extends SamplingOptions {
  /** The maximum number of tokens. Default 256. */
  readonly maxTokens?: number | undefined;
  /** Tokens that end the text. They are not yielded. Default: none. */
  readonly stopTokens?: Iterable<number> | undefined;
  /** The seed of the random numbers: the same seed gives the same tokens. Default: from the system's entropy. */
  readonly seed?: number | bigint | undefined;
  /** A generator of random numbers, instead of a seed. */
  readonly generator?: Generator | undefined;
  /** Aborts the generation between two tokens, with the signal's reason as the error. */
  readonly signal?: AbortSignal | undefined;
  /** Whether keys and values of earlier tokens are cached. Default true. */
  readonly useCache?: boolean | undefined;
}

/** @internal Sampling options with defaults filled in. */
export interface Sampling extends Required<{ [Name in keyof SamplingOptions]: number }> {}

/** @internal Checked options with defaults filled in. */
export interface GenerateSettings {
  readonly sampling: Sampling;
  readonly maxTokens: number;
  readonly stopTokens: ReadonlySet<number>;
  readonly generator: Generator;
  readonly signal: AbortSignal | undefined;
  readonly useCache: boolean;
}

interface Range {
  readonly holds: (value: number) => boolean;
  readonly expected: string;
}

const isCount = (value: number): boolean => value === Infinity || (Number.isSafeInteger(value) && value >= 1);

const ranges = {
  temperature: { holds: (value) => value >= 0 && value < Infinity, expected: "a finite number of at least 0" },
  topK: { holds: isCount, expected: "a whole number of at least 1" },
  topP: { holds: (value) => value > 0 && value <= 1, expected: "a probability above 0" },
  repetitionPenalty: { holds: (value) => value > 0 && value < Infinity, expected: "a finite number above 0" },
  maxTokens: { holds: (value) => value === 0 || isCount(value), expected: "a whole number of at least 0, or Infinity" },
} as const satisfies Readonly<Record<string, Range>>;

function check(operation: string, name: keyof typeof ranges, value: number): number {
  if (typeof value === "number" && ranges[name].holds(value)) return value;
  throw new ArgumentError(
    operation,
    "invalidOption",
    `expected ${name} to be ${ranges[name].expected}, got ${String(value)}`,
  );
}

/** @internal @throws {ArgumentError} naming the option and its range. */
export const samplingOf = (operation: string, options: SamplingOptions): Sampling => ({
  temperature: check(operation, "temperature", options.temperature ?? 1),
  topK: check(operation, "topK", options.topK ?? Infinity),
  topP: check(operation, "topP", options.topP ?? 1),
  repetitionPenalty: check(operation, "repetitionPenalty", options.repetitionPenalty ?? 1),
});

/** @internal @throws {ArgumentError} naming the option and its range. */
export function settingsOf(operation: string, options: GenerateOptions): GenerateSettings {
  const { maxTokens = 256, stopTokens = [], seed, generator, signal, useCache = true } = options;
  if (seed !== undefined && generator !== undefined)
    throw new ArgumentError(operation, "twoSources", "expected a seed or a generator, got both; pass one of them");
  return {
    sampling: samplingOf(operation, options),
    maxTokens: check(operation, "maxTokens", maxTokens),
    stopTokens: new Set(stopTokens),
    generator: generator ?? new Generator(seed),
    ...{ signal, useCache },
  };
}
