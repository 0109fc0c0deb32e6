/** The options of `generate` and `Batcher.submit`, and their checks. */
import { ArgumentError } from "../../core/errors.ts";
import { aNumber, choice, flag, instanceOf, isListed } from "../../core/kinds.ts";
import { finite, type NumberRule } from "../../core/options.ts";
import { type Kind, named, type Parsed } from "../../core/parameters.ts";
import { Generator } from "../../random/generator.ts";
import { seed as aSeed } from "../../random/kinds.ts";
import type { TokenConstraint } from "../../text/constraint/token_constraint.ts";
import { type CacheFormat, cacheFormats } from "../cache/store.ts";
import { aGenerator } from "../layers/kinds.ts";
import type { LanguageModel } from "../models/language_model.ts";
import { aModel } from "../tasks/prompt.ts";

/** Options for sampling the next token from logits. */
export interface SamplingOptions {
  /** Divides the logits: values below 1 make likely tokens likelier; 0 selects greedy decoding. Default 1. */
  readonly temperature?: number | undefined;
  /** Samples only from this many most likely tokens. Default: all. */
  readonly topK?: number | undefined;
  /** Samples from the fewest most likely tokens whose probabilities sum to at least this; in (0, 1]. Default 1. */
  readonly topP?: number | undefined;
  /** Keeps only tokens with at least this fraction of the top token's probability; in [0, 1]. Default 0. */
  readonly minP?: number | undefined;
  /** Divides positive logits of previous tokens by this factor and multiplies negative ones; above 0. Default 1. */
  readonly repetitionPenalty?: number | undefined;
  /** Subtracted from the logits of generated tokens; tokens of the prompt do not count. Default 0. */
  readonly presencePenalty?: number | undefined;
  /** Subtracted from the logit of a token once for each time it was generated. Default 0. */
  readonly frequencyPenalty?: number | undefined;
  /** Added to the logits of the given tokens; −Infinity excludes a token. Default: none. */
  readonly logitBias?: Readonly<Record<number, number>> | ReadonlyMap<number, number> | undefined;
}

/** Options of {@link generate}. */
export interface GenerateOptions extends SamplingOptions {
  /** The maximum number of tokens to generate. Default 256. */
  readonly maxTokens?: number | undefined;
  /** Tokens that end generation. They are not yielded. Default: none. */
  readonly stopTokens?: Iterable<number> | undefined;
  /** Seed of the random numbers: the same seed gives the same tokens. Default: from the system's entropy. */
  readonly seed?: number | bigint | undefined;
  /** A generator of random numbers, instead of a seed. */
  readonly generator?: Generator | undefined;
  /** A constraint on the generated text, compiled by `text.compileConstraint`. Default: none. */
  readonly constraint?: TokenConstraint | undefined;
  /** Aborts the generation between two tokens, with the signal's reason as the error. */
  readonly signal?: AbortSignal | undefined;
  /** Whether keys and values of earlier tokens are cached. Default true. */
  readonly useCache?: boolean | undefined;
  /**
   * Storage format of the key/value cache: see {@link CacheFormat}. Default: the dtype that keys and values are
   * computed in.
   */
  readonly cache?: CacheFormat | undefined;
  /**
   * Whether tokens after the prompt are computed by a program (`compile`), with the same bits. It is used on the cpu
   * and metal backends, for at least 16 tokens and without a draft. Default true.
   */
  readonly compile?: boolean | undefined;
  /**
   * A smaller draft model with the same vocabulary. It proposes tokens that the model verifies several at a time
   * (speculative decoding). The tokens have the same distribution as without a draft. Generation ends when the context
   * is full. Default: none.
   */
  readonly draft?: LanguageModel | undefined;
  /** Number of draft tokens per verification. Default 4. */
  readonly draftTokens?: number | undefined;
}

/** @internal Sampling options with defaults filled in. */
export interface Sampling extends Required<{ [Name in Exclude<keyof SamplingOptions, "logitBias">]: number }> {
  readonly logitBias: ReadonlyMap<number, number>;
}

/** Options of {@link Batcher.submit}. */
export interface BatchOptions
  extends Omit<GenerateOptions, "useCache" | "cache" | "compile" | "draft" | "draftTokens"> {
  /** Also return log probabilities: of each generated token, and of this many most likely tokens. Default: neither. */
  readonly logProbabilities?: number | undefined;
}

/** @internal Checked options with defaults filled in. */
export interface GenerateSettings {
  readonly sampling: Sampling;
  readonly maxTokens: number;
  readonly stopTokens: ReadonlySet<number>;
  readonly generator: Generator;
  readonly signal: AbortSignal | undefined;
  readonly useCache: boolean;
  readonly cache: CacheFormat | undefined;
  readonly compile: boolean;
  readonly logProbabilities: number | undefined;
  readonly constraint: TokenConstraint | undefined;
  readonly draft: LanguageModel | undefined;
  readonly draftTokens: number;
}

const isCount = (value: number): boolean => value === Infinity || (Number.isSafeInteger(value) && value >= 1);

const countOrNone: NumberRule = {
  holds: (value) => value === 0 || isCount(value),
  expected: "a whole number of at least 0, or Infinity",
};

const ranges = {
  temperature: { holds: (value) => value >= 0 && value < Infinity, expected: "a finite number of at least 0" },
  topK: { holds: isCount, expected: "a whole number of at least 1, or Infinity" },
  topP: { holds: (value) => value > 0 && value <= 1, expected: "a probability above 0" },
  minP: { holds: (value) => value >= 0 && value <= 1, expected: "a number from 0 to 1" },
  repetitionPenalty: { holds: (value) => value > 0 && value < Infinity, expected: "a finite number above 0" },
  penalty: finite,
  draftTokens: { holds: (value) => isCount(value) && value <= 64, expected: "a whole number from 1 to 64" },
  logProbabilities: countOrNone,
  maxTokens: countOrNone,
} as const satisfies Readonly<Record<string, NumberRule>>;

/** A list or set of token ids. */
const tokens: Kind<ReadonlySet<number>> = {
  expected: "a list or a set of tokens",
  parse(value) {
    if (typeof value !== "object" || value === null || !(Symbol.iterator in value)) return undefined;
    const ids = [...(value as Iterable<unknown>)];
    return ids.every((token) => Number.isSafeInteger(token)) ? new Set(ids as number[]) : undefined;
  },
};

/** Numbers by token id. */
const bias: Kind<ReadonlyMap<number, number>> = {
  expected: "an object or a Map from tokens to numbers below Infinity",
  parse(value) {
    if (typeof value !== "object" || value === null || isListed(value)) return undefined;
    const entries =
      value instanceof Map ? [...value] : Object.entries(value).map(([key, amount]) => [Number(key), amount]);
    const holds = ([token, amount]: unknown[]) =>
      Number.isSafeInteger(token) && typeof amount === "number" && amount < Infinity;
    return entries.every(holds) ? new Map(entries as [number, number][]) : undefined;
  },
};

const aConstraint: Kind<TokenConstraint> = {
  expected: "a constraint that compileConstraint() returned",
  parse: (value) =>
    typeof (value as Partial<TokenConstraint> | null | undefined)?.start === "function"
      ? (value as TokenConstraint)
      : undefined,
};

const samplingParameters = {
  temperature: named(aNumber(ranges.temperature), 1),
  topK: named(aNumber(ranges.topK), Infinity),
  topP: named(aNumber(ranges.topP), 1),
  minP: named(aNumber(ranges.minP), 0),
  repetitionPenalty: named(aNumber(ranges.repetitionPenalty), 1),
  presencePenalty: named(aNumber(ranges.penalty), 0),
  frequencyPenalty: named(aNumber(ranges.penalty), 0),
  logitBias: named(bias, new Map()),
} as const;

/** @internal */
export const aCacheFormat: Kind<CacheFormat> = choice(...cacheFormats);

/** @internal The named options of `Batcher.submit`. */
export const batchParameters = {
  ...samplingParameters,
  maxTokens: named(aNumber(ranges.maxTokens), 256),
  stopTokens: named(tokens),
  seed: named(aSeed),
  generator: named(aGenerator),
  constraint: named(aConstraint),
  signal: named(instanceOf(AbortSignal, "an AbortSignal")),
  logProbabilities: named(aNumber(ranges.logProbabilities)),
} as const;

const { logProbabilities: _, ...ownParameters } = batchParameters;

/** @internal The named options of `generate` and `generateText`. */
export const generateParameters = {
  ...ownParameters,
  useCache: named(flag, true),
  cache: named(aCacheFormat),
  compile: named(flag, true),
  draft: named(aModel),
  draftTokens: named(aNumber(ranges.draftTokens), 4),
} as const;

type Others = Sampling &
  Partial<Pick<GenerateSettings, "useCache" | "cache" | "compile" | "logProbabilities" | "draft" | "draftTokens">>;

/**
 * @internal Fills in the defaults of options. @throws {ArgumentError} for both a seed and a generator, and for a cache
 * format without a cache.
 */
export function settingsOf(
  operation: string,
  options: Parsed<typeof generateParameters> | Parsed<typeof batchParameters>,
): GenerateSettings {
  const { maxTokens, stopTokens, seed, generator, signal, constraint, ...others } = options;
  const {
    useCache = true,
    cache,
    compile = true,
    logProbabilities,
    draft,
    draftTokens = 4,
    ...sampling
  } = { logProbabilities: undefined, ...others } as Others;
  if (seed !== undefined && generator !== undefined)
    throw new ArgumentError(operation, "twoSources", "expected a seed or a generator, got both; pass one of them");
  if (cache !== undefined && !useCache)
    throw new ArgumentError(operation, "noCache", `cache: "${cache}" requires useCache: true, got useCache: false`);
  return {
    sampling,
    maxTokens,
    signal,
    useCache,
    cache,
    compile,
    logProbabilities,
    constraint,
    draft,
    draftTokens,
    stopTokens: stopTokens ?? new Set(),
    generator: generator ?? new Generator(seed),
  };
}
