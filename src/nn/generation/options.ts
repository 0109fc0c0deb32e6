/** What callers of `generate` say, and how it is checked. */
import { ArgumentError } from "../../core/errors.ts";
import { Generator } from "../../random/generator.ts";

/** How the next token is chosen from logits. */
export interface SamplingOptions {
  /** Logits are divided by it: below 1 likely tokens become likelier, and 0 always takes the likeliest. Default 1. */
  readonly temperature?: number | undefined;
  /** Only the so many likeliest tokens are chosen from. Default: all. */
  readonly topK?: number | undefined;
  /** Only the likeliest tokens are chosen from, as few as have at least this probability together; above 0, at most 1. Default 1. */
  readonly topP?: number | undefined;
  /** Logits of tokens that have come are divided by it where above 0, and else multiplied; above 0. Default 1. */
  readonly repetitionPenalty?: number | undefined;
}

/** Options of {@link generate}. */
export interface GenerateOptions extends SamplingOptions {
  /** How many tokens at most. Default 256. */
  readonly maxTokens?: number | undefined;
  /** Tokens that end the text; they are not given out. Default: none. */
  readonly stopTokens?: Iterable<number> | undefined;
  /** The same seed, the same tokens. Default: the system's entropy. */
  readonly seed?: number | bigint | undefined;
  /** Where random numbers come from, instead of a seed. */
  readonly generator?: Generator | undefined;
  /** Ends the generation between two tokens: what is awaited then is rejected with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Whether keys and values are kept, so that a token costs the computation of one. Default true. */
  readonly useCache?: boolean | undefined;
}

/** @internal Options with their defaults. */
export interface Sampling extends Required<{ [Name in keyof SamplingOptions]: number }> {}

/** @internal */
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
  readonly said: string;
}

const isCount = (value: number): boolean => value === Infinity || (Number.isSafeInteger(value) && value >= 1);

const ranges = {
  temperature: { holds: (value) => value >= 0 && value < Infinity, said: "a finite number of at least 0" },
  topK: { holds: isCount, said: "a whole number of at least 1" },
  topP: { holds: (value) => value > 0 && value <= 1, said: "a probability above 0" },
  repetitionPenalty: { holds: (value) => value > 0 && value < Infinity, said: "a finite number above 0" },
  maxTokens: { holds: (value) => value === 0 || isCount(value), said: "a whole number of at least 0, or Infinity" },
} as const satisfies Readonly<Record<string, Range>>;

function check(operation: string, name: keyof typeof ranges, value: number): number {
  if (typeof value === "number" && ranges[name].holds(value)) return value;
  throw new ArgumentError(operation, "invalidOption", `${name} is ${ranges[name].said}, ${String(value)} came`);
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
    throw new ArgumentError(operation, "twoSources", "a seed and a generator came; give one of them");
  return {
    sampling: samplingOf(operation, options),
    maxTokens: check(operation, "maxTokens", maxTokens),
    stopTokens: new Set(stopTokens),
    generator: generator ?? new Generator(seed),
    ...{ signal, useCache },
  };
}
