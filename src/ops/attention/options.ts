/** Options of `flashAttention` and their validation. */

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
 * Selects how attention is computed. `"auto"` (the default) chooses by size; `"fused"`: one kernel with memory linear
 * in the sequence length, on any backend that has it; `"unfused"`: matrix products and a softmax of all scores, with
 * quadratic memory; a backend's name: fused, trying that backend first.
 */
export type AttentionPath = "auto" | "fused" | "unfused" | BackendName;

/**
 * Numbers of keys before (`left`) and after (`right`) the aligned key that a query attends to. An omitted side is
 * unlimited.
 */
export interface AttentionWindow {
  readonly left?: number | undefined;
  readonly right?: number | undefined;
}

/**
 * Cumulative lengths of packed sequences, starting with 0: sequence n has the rows from element n up to, but excluding,
 * element n + 1.
 */
export type SequenceBounds = readonly number[] | Int32Array | Tensor<"int32" | "int64">;

/** Options of {@link flashAttention}. */
export interface FlashAttentionOptions extends GeneratorOptions {
  /**
   * Causal masking: a query attends to no key after the one it is aligned with. `true` means `"bottom-right"`, which
   * aligns the last query with the last key. `"top-left"` aligns the first query with the first key. Default false.
   */
  causal?: boolean | Alignment | undefined;
  /** Factor of the products of queries and keys. Default 1 / √dim. */
  scale?: number | undefined;
  /**
   * Probability of setting each attention probability to 0, in [0, 1); the others are scaled by 1 / (1 − dropout).
   * Default 0.
   */
  dropout?: number | undefined;
  /** bool, true = attends; broadcasts to [batch, heads, queries, keys]. */
  mask?: Tensor<"bool"> | undefined;
  /** Added to the scores; has q's dtype and broadcasts to [batch, heads, queries, keys]. −∞ masks. Differentiable. */
  bias?: Tensor | undefined;
  /** A sliding window; a number applies to both sides. With `causal`, its right side is 0. Default: none. */
  window?: number | AttentionWindow | undefined;
  /** Scores become softcap · tanh(score / softcap), before bias and slopes. Above 0. Default: none. */
  softcap?: number | undefined;
  /** [heads]: an extra score for each head that enters the softmax but has no value. Has q's dtype. Differentiable. */
  sinks?: Tensor | undefined;
  /**
   * [heads], or [batch, heads]: ALiBi slopes; a score decreases by slope · |distance from the aligned key|. Not
   * differentiable.
   */
  alibi?: Tensor | readonly number[] | undefined;
  /**
   * Bounds of sequences that are packed one after the other along the queries and keys of a batch of 1. Sequences do
   * not attend to each other. Pass one list if queries and keys have the same bounds.
   */
  cuSeqlens?: SequenceBounds | { readonly queries: SequenceBounds; readonly keys: SequenceBounds } | undefined;
  /** Also return ln Σ exp of each query's scores. */
  returnLogSumExp?: boolean | undefined;
  /** Also return which probabilities dropout kept. */
  returnDropoutMask?: boolean | undefined;
  path?: AttentionPath | undefined;
}

const bounds: Kind<SequenceBounds> = either(
  aTensor as Kind<Tensor<"int32" | "int64">>,
  listOf(someNumber, "a list of numbers"),
);
const side = named(someNumber);

/** @internal Types of the options. */
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

/** Validates `path`. @throws {ArgumentError} */
export function checkPath(operation: string, path: AttentionPath): AttentionPath {
  if (paths.includes(path)) return path;
  throw new ArgumentError(
    operation,
    "unknownPath",
    `expected path to be one of ${paths.join(", ")}, got ${String(path)}`,
  );
}

/** Ranges of the numeric options. */
export const numberRules = {
  scale: finite,
  dropout: { ...belowOne, expected: "a probability in [0, 1)" },
  softcap: { ...positive, expected: "a finite number above 0 (omit it for no softcap)" },
} as const satisfies Readonly<Record<string, NumberRule>>;

/** Combines `causal` and `window` into a band; undefined if neither restricts anything. @throws {ArgumentError} */
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
    `expected window.${side} to be a whole number of at least 0 (omit it for no limit), got ${String(value)}`,
  );
}

/** Returns the alignment that `causal` selects. @throws {ArgumentError} */
export function alignmentOf(operation: string, { causal = false }: FlashAttentionOptions): Alignment {
  if (typeof causal === "boolean") return "bottom-right";
  if (causal === "bottom-right" || causal === "top-left") return causal;
  throw new ArgumentError(
    operation,
    "invalidOption",
    `expected causal to be true, false, "bottom-right" or "top-left", got ${String(causal)}`,
  );
}
