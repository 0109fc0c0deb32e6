/**
 * The angles per position by which rotary embeddings rotate pairs of elements, computed in float64 from a model's
 * settings.
 */
import { describeValue } from "../../core/describe.ts";
import { ArgumentError } from "../../core/errors.ts";
import { aNumber, flag, listOf, someNumber, text } from "../../core/kinds.ts";
import { positive } from "../../core/options.ts";
import { type Kind, named, required, structure } from "../../core/parameters.ts";

/**
 * Linear scaling: positions are divided by the factor, which extends the context by it.
 *
 * Source: S. Chen et al., "Extending context window of large language models via positional interpolation", 2023.
 */
export interface LinearScaling {
  readonly type: "linear";
  readonly factor: number;
}

/**
 * Llama 3.1's scaling: frequencies of slow pairs are divided by the factor, frequencies of fast pairs are unchanged,
 * and a linear ramp is in between. Names match Hugging Face's `rope_scaling`.
 */
export interface Llama3Scaling {
  readonly type: "llama3";
  readonly factor: number;
  readonly lowFrequencyFactor: number;
  readonly highFrequencyFactor: number;
  readonly originalContextLength: number;
}

/**
 * YaRN scaling: a linear ramp from unchanged frequencies to frequencies divided by the factor, and a multiplier of the
 * results.
 *
 * Source: B. Peng et al., "YaRN: efficient context window extension of large language models", 2023.
 */
export interface YarnScaling {
  readonly type: "yarn";
  readonly factor: number;
  readonly originalContextLength: number;
  /** Cycles in the original context above which the frequency of a pair is unchanged. Default 32. */
  readonly betaFast?: number | undefined;
  /** Cycles in the original context below which the frequency of a pair is divided by the factor. Default 1. */
  readonly betaSlow?: number | undefined;
  /** Multiplier of the results. Default 0.1·ln(factor) + 1. */
  readonly attentionFactor?: number | undefined;
  /** Whether the ramp starts and ends at whole pairs. Default true. */
  readonly truncate?: boolean | undefined;
}

/**
 * LongRoPE scaling: the frequency of each pair is divided by a separate factor.
 *
 * Source: Y. Ding et al., "LongRoPE: extending LLM context window beyond 2 million tokens", 2024.
 */
export interface FactorsScaling {
  readonly type: "factors";
  /** One factor for each pair. */
  readonly factors: readonly number[];
  /** Multiplier of the results. Default 1. */
  readonly attentionFactor?: number | undefined;
}

/** A scaling of `rope` for contexts longer than those that a model was trained on. */
export type RopeScaling = LinearScaling | Llama3Scaling | YarnScaling | FactorsScaling;

/** The rotation of pairs. */
export interface Rotation {
  /** The frequency of each pair, in radians per position. */
  readonly frequencies: readonly number[];
  /** Multiplier of the results. */
  readonly magnitude: number;
}

/**
 * Computes the rotation of `dim` elements: pair i rotates by base^(−2i/dim) radians per position, scaled.
 *
 * Source: J. Su et al., "RoFormer", 2021, equation 15.
 */
export function rotationOf(dim: number, base: number, scaling: RopeScaling | undefined): Rotation {
  const frequencies = Array.from({ length: dim / 2 }, (_, pair) => base ** ((-2 * pair) / dim));
  if (scaling === undefined) return { frequencies, magnitude: 1 };
  switch (scaling.type) {
    case "linear":
      return { frequencies: frequencies.map((frequency) => frequency / scaling.factor), magnitude: 1 };
    case "llama3":
      return { frequencies: frequencies.map((frequency) => llama3(frequency, scaling)), magnitude: 1 };
    case "yarn":
      return yarn(frequencies, dim, base, scaling);
    case "factors":
      return byFactors(frequencies, scaling);
  }
}

/** @throws {ArgumentError} if the number of factors is not the number of pairs. */
function byFactors(frequencies: readonly number[], { factors, attentionFactor = 1 }: FactorsScaling): Rotation {
  if (factors.length === frequencies.length)
    return {
      frequencies: frequencies.map((frequency, pair) => frequency / factors[pair]),
      magnitude: attentionFactor,
    };
  throw new ArgumentError(
    "rope",
    "invalidScaling",
    `expected scaling "factors" to have ${frequencies.length} factors, one for each pair, got ${factors.length}`,
  );
}

/**
 * Scales a frequency by the cycles of its pair in the original context. Source: Hugging Face's
 * `_compute_llama3_parameters`.
 */
function llama3(frequency: number, scaling: Llama3Scaling): number {
  const { factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalContextLength } = scaling;
  const cycles = (originalContextLength * frequency) / (2 * Math.PI);
  const kept = between0And1((cycles - low) / (high - low));
  return kept * frequency + (1 - kept) * (frequency / factor);
}

/** Computes YaRN's rotation. Source: Hugging Face's `_compute_yarn_parameters`. */
function yarn(frequencies: readonly number[], dim: number, base: number, scaling: YarnScaling): Rotation {
  const { factor, originalContextLength, betaFast = 32, betaSlow = 1, truncate = true } = scaling;
  // The fractional index of the pair that rotates `cycles` cycles in the original context.
  const pairOf = (cycles: number) =>
    (dim * Math.log(originalContextLength / (cycles * 2 * Math.PI))) / (2 * Math.log(base));
  const [from, to] = [pairOf(betaFast), pairOf(betaSlow)];
  const first = Math.max(truncate ? Math.floor(from) : from, 0);
  const last = Math.min(truncate ? Math.ceil(to) : to, dim - 1);
  const length = last === first ? 0.001 : last - first;
  return {
    frequencies: frequencies.map((frequency, pair) => {
      const slowed = between0And1((pair - first) / length);
      return (frequency / factor) * slowed + frequency * (1 - slowed);
    }),
    magnitude: scaling.attentionFactor ?? (factor <= 1 ? 1 : 0.1 * Math.log(factor) + 1),
  };
}

const between0And1 = (x: number): number => Math.min(Math.max(x, 0), 1);

const requiredFigures: Readonly<Record<RopeScaling["type"], readonly string[]>> = {
  linear: ["factor"],
  llama3: ["factor", "lowFrequencyFactor", "highFrequencyFactor", "originalContextLength"],
  yarn: ["factor", "originalContextLength"],
  factors: [],
};

const type = required(text);
const figure = named(someNumber);
const partsOf = {
  linear: structure({ type, factor: figure }),
  llama3: structure({
    type,
    factor: figure,
    lowFrequencyFactor: figure,
    highFrequencyFactor: figure,
    originalContextLength: figure,
  }),
  yarn: structure({
    type,
    factor: figure,
    originalContextLength: figure,
    betaFast: figure,
    betaSlow: figure,
    attentionFactor: figure,
    truncate: named(flag),
  }),
  factors: structure({
    type,
    factors: required(listOf(aNumber(positive), "a list of numbers above 0")),
    attentionFactor: figure,
  }),
} as const;

/** A scaling, which is copied and whose numbers are checked. */
export const aScaling: Kind<RopeScaling> = {
  expected: "an object with the type of a scaling and its numbers",
  parse(value, operation, name) {
    if (typeof value !== "object" || value === null) return undefined;
    const { type: kind } = value as { type?: unknown };
    const parts =
      typeof kind === "string" && Object.hasOwn(partsOf, kind) ? partsOf[kind as RopeScaling["type"]] : undefined;
    if (parts === undefined)
      throw new ArgumentError(
        operation,
        "unknownScaling",
        `expected ${name} of type ${Object.keys(partsOf).join(", ")}, got ${describeValue(kind)}`,
      );
    const scaling = parts.parse(value, operation, name) as RopeScaling | undefined;
    if (scaling !== undefined) checkScaling(operation, scaling);
    return scaling;
  },
};

/** @throws {ArgumentError} for a number that is missing or not above 0. */
function checkScaling(operation: string, scaling: RopeScaling): void {
  const names = requiredFigures[scaling.type];
  const figures = scaling as unknown as Readonly<Record<string, unknown>>;
  const wrong = names.find((name) => !((figures[name] as number) > 0 && Number.isFinite(figures[name])));
  if (wrong !== undefined)
    throw new ArgumentError(
      operation,
      "invalidScaling",
      `expected ${wrong} of scaling "${scaling.type}" to be a number above 0, got ${String(figures[wrong])}`,
    );
  if (scaling.type === "llama3" && !(scaling.highFrequencyFactor > scaling.lowFrequencyFactor))
    throw new ArgumentError(
      operation,
      "invalidScaling",
      `expected highFrequencyFactor to be above lowFrequencyFactor ${scaling.lowFrequencyFactor}, got ` +
        String(scaling.highFrequencyFactor),
    );
}
