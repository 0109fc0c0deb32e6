/** What callers of `flashAttention` say, and how it is checked. */

import { type BackendName, backendNames } from "../../backend/names.ts";
import { ArgumentError } from "../../core/errors.ts";
import { choice, either, flag, listOf, someNumber } from "../../core/kinds.ts";
import { belowOne, finite, type NumberRule, positive } from "../../core/options.ts";
import { type Kind, named, type Parameter, required, structure } from "../../core/parameters.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aGenerator, type GeneratorOptions } from "../random/distribution.ts";
import type { Alignment, Band } from "./problem.ts";

/**
 * How attention is computed. `"auto"` (the default) chooses; `"fused"`: by one kernel whose memory is linear in the
 * sequence, on whichever backend has it; `"unfused"`: by products and a softmax of all scores, quadratic in memory; a
 * backend's name: fused, with that backend tried first.
 */
export type AttentionPath = "auto" | "fused" | "unfused" | BackendName;

/**
 * How far a query sees: so many keys before, and so many after, the one that stands opposite. A side that is left out
 * is open.
 */
export interface AttentionWindow {
  readonly left?: number | undefined;
  readonly right?: number | undefined;
}

/**
 * Ends of packed sequences, starting with 0: sequence n has the rows from element n up to, and without, element n + 1.
 */
export type SequenceBounds = readonly number[] | Int32Array | Tensor<"int32" | "int64">;

/** What {@link flashAttention} takes beside queries, keys and values. */
export interface FlashAttentionOptions extends GeneratorOptions {
  /**
   * A query attends to no later key than the one that stands opposite. True is `"bottom-right"`: where there are more
   * keys than queries, the last query stands opposite the last key. `"top-left"`: the first opposite the first. Default
   * false.
   */
  causal?: boolean | Alignment | undefined;
  /** What products of queries and keys are multiplied with. Default 1 / √dim. */
  scale?: number | undefined;
  /**
   * The probability with which each attention probability is set to 0, in [0, 1); the others grow by 1 / (1 − dropout).
   * Default 0.
   */
  dropout?: number | undefined;
  /** bool, true = attends; broadcasts to [batch, heads, queries, keys]. */
  mask?: Tensor<"bool"> | undefined;
  /** Added to the scores; of the dtype of q; broadcasts to [batch, heads, queries, keys]. −∞ masks. Has a gradient. */
  bias?: Tensor | undefined;
  /** A sliding window; a number counts on both sides. With `causal`, its right side is 0. Default: none. */
  window?: number | AttentionWindow | undefined;
  /** Scores become softcap · tanh(score / softcap), before bias and slopes. Above 0. Default: none. */
  softcap?: number | undefined;
  /**
   * [heads]: a score of each head that takes part in the softmax and has no value. Of the dtype of q. Has a gradient.
   */
  sinks?: Tensor | undefined;
  /**
   * [heads], or [batch, heads]: slopes of ALiBi; a score falls by slope · |distance from the key opposite|. Has no
   * gradient.
   */
  alibi?: Tensor | readonly number[] | undefined;
  /**
   * Sequences of different lengths, packed one after the other along the queries and keys of a batch of 1; none attends
   * to another. One list where queries and keys have the same bounds.
   */
  cuSeqlens?: SequenceBounds | { readonly queries: SequenceBounds; readonly keys: SequenceBounds } | undefined;
  /** Also give ln Σ exp of each query's scores. */
  returnLogSumExp?: boolean | undefined;
  /** Also give which probabilities dropout kept. */
  returnDropoutMask?: boolean | undefined;
  path?: AttentionPath | undefined;
}

const bounds: Kind<SequenceBounds> = either(
  aTensor as Kind<Tensor<"int32" | "int64">>,
  listOf(someNumber, "a list of numbers"),
);
const side = named(someNumber);

/** @internal What they have to be. */
export const flashAttentionOptions = {
  causal: named(either(flag, choice("top-left", "bottom-right"))),
  scale: named(someNumber),
  dropout: named(someNumber),
  generator: named(aGenerator),
  mask: named(aTensor as Kind<Tensor<"bool">>),
  bias: named(aTensor),
  window: named(either(someNumber, structure({ left: side, right: side }))),
  softcap: named(someNumber),
  sinks: named(aTensor),
  alibi: named(either(aTensor, listOf(someNumber, "a list of numbers"))),
  cuSeqlens: named(either(bounds, structure({ queries: required(bounds), keys: required(bounds) }))),
  returnLogSumExp: named(flag),
  returnDropoutMask: named(flag),
  path: named({ ...choice("auto", "fused", "unfused", ...backendNames), error: [ArgumentError, "unknownPath"] }),
} as const satisfies Readonly<Record<keyof FlashAttentionOptions, Parameter<unknown>>>;

const paths: readonly string[] = ["auto", "fused", "unfused", ...backendNames];

/** @throws {ArgumentError} */
export function checkPath(operation: string, path: AttentionPath): AttentionPath {
  if (paths.includes(path)) return path;
  throw new ArgumentError(
    operation,
    "unknownPath",
    `expected path to be one of ${paths.join(", ")}, got ${String(path)}`,
  );
}

/** What the numbers among the options have to be. */
export const numberRules = {
  scale: finite,
  dropout: { ...belowOne, expected: "a probability in [0, 1)" },
  softcap: { ...positive, expected: "a finite number above 0 (leave it out for none)" },
} as const satisfies Readonly<Record<string, NumberRule>>;

/** The band of `causal` and `window` together; undefined where both leave everything open. @throws {ArgumentError} */
export function bandOf(operation: string, { causal = false, window }: FlashAttentionOptions): Band | undefined {
  const { left, right } = typeof window === "number" ? { left: window, right: window } : (window ?? {});
  const band = {
    left: checkSide(operation, "left", left),
    right: Math.min(checkSide(operation, "right", right), causal ? 0 : Infinity),
  };
  return band.left === Infinity && band.right === Infinity ? undefined : band;
}

function checkSide(operation: string, side: string, value = Infinity): number {
  if ((Number.isSafeInteger(value) || value === Infinity) && value >= 0) return value;
  throw new ArgumentError(
    operation,
    "invalidOption",
    `expected window.${side} to be a whole number of at least 0 (leave it out for an open side), got ${String(value)}`,
  );
}

/** @throws {ArgumentError} */
export function alignmentOf(operation: string, { causal = false }: FlashAttentionOptions): Alignment {
  if (typeof causal === "boolean") return "bottom-right";
  if (causal === "bottom-right" || causal === "top-left") return causal;
  throw new ArgumentError(
    operation,
    "invalidOption",
    `expected causal to be true, false, "bottom-right" or "top-left", got ${String(causal)}`,
  );
}
