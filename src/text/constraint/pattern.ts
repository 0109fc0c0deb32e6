/** Regular expressions as trees over sets of characters, without elements that do not affect which texts match. */
import type { Automaton } from "./automaton.ts";
import { type CodePoints, everything, rangeOf, union } from "./code_points.ts";

export type Pattern =
  | { readonly kind: "set"; readonly set: CodePoints }
  | { readonly kind: "sequence"; readonly parts: readonly Pattern[] }
  | { readonly kind: "choice"; readonly options: readonly Pattern[] }
  | { readonly kind: "repeat"; readonly part: Pattern; readonly least: number; readonly most: number }
  /** The texts that match every part. */
  | { readonly kind: "both"; readonly parts: readonly Pattern[] }
  /** The texts that don't match. */
  | { readonly kind: "not"; readonly part: Pattern }
  | ({ readonly kind: "multiple" } & Multiple)
  /** The texts that lead from the first state to an accepting one. */
  | { readonly kind: "states"; readonly states: Automaton };

/** Digits of a multiple of `of` / 10^`places`. `rest` holds the state of the digits so far. */
export interface Multiple {
  readonly of: number;
  /** The digits so far, modulo `of`. */
  readonly rest: number;
  /** The number of digits that may still follow the point; zeros may always follow. */
  readonly places: number;
  readonly isAfterPoint: boolean;
}

/** Matches only the empty text. */
export const empty: Pattern = { kind: "sequence", parts: [] };
/** Matches no text. */
export const nothing: Pattern = { kind: "choice", options: [] };

/** Matches any text. */
export const anyText: Pattern = { kind: "repeat", part: { kind: "set", set: everything }, least: 0, most: Infinity };

export const isEmpty = (pattern: Pattern): boolean => pattern.kind === "sequence" && pattern.parts.length === 0;
export const isNothing = (pattern: Pattern): boolean => pattern.kind === "choice" && pattern.options.length === 0;

export const setOf = (set: CodePoints): Pattern => (set.length === 0 ? nothing : { kind: "set", set });

export const literal = (text: string): Pattern =>
  sequence(Array.from(text, (character) => setOf(rangeOf(character.codePointAt(0)!))));

export const not = (part: Pattern): Pattern => (part.kind === "not" ? part.part : { kind: "not", part });

export function both(parts: readonly Pattern[]): Pattern {
  const all = parts.flatMap((part) => (part.kind === "both" ? part.parts : [part])).filter((part) => part !== anyText);
  const flat = [...new Set(all)];
  if (flat.some(isNothing)) return nothing;
  if (flat.length === 0) return anyText;
  return flat.length === 1 ? flat[0] : { kind: "both", parts: flat };
}

export function sequence(parts: readonly Pattern[]): Pattern {
  const flat = parts.flatMap((part) => (part.kind === "sequence" ? part.parts : [part]));
  if (flat.some(isNothing)) return nothing;
  return flat.length === 1 ? flat[0] : { kind: "sequence", parts: flat };
}

/** Alternation. Single characters are merged into one set; an empty option makes the others optional. */
export function choice(options: readonly Pattern[]): Pattern {
  const flat = options.flatMap((option) => (option.kind === "choice" ? option.options : [option]));
  const sets = flat.flatMap((option) => (option.kind === "set" ? [option.set] : []));
  const others = flat.filter((option) => option.kind !== "set" && !isEmpty(option));
  const kept = sets.length > 0 ? [setOf(union(...sets)), ...others] : others;
  const chosen: Pattern = kept.length === 1 ? kept[0] : { kind: "choice", options: kept };
  return flat.some(isEmpty) ? repeat(chosen, 0, 1) : chosen;
}

/** Repetition. Nested repeats are merged if every count between the bounds is possible. */
export function repeat(part: Pattern, least: number, most: number): Pattern {
  if (isNothing(part)) return least === 0 ? empty : nothing;
  if (isEmpty(part) || most === 0) return empty;
  if (least === 1 && most === 1) return part;
  if (part.kind === "repeat" && hasNoGap(part, least, most))
    return { kind: "repeat", part: part.part, least: part.least * least, most: part.most * most };
  return { kind: "repeat", part, least, most };
}

/** Whether the lengths of n and of n + 1 repetitions leave no gap, for the least n; gaps for greater n are smaller. */
const hasNoGap = (inner: { readonly least: number; readonly most: number }, least: number, most: number): boolean =>
  least === most || inner.least * (least + 1) <= (least === 0 ? 0 : inner.most * least) + 1;

/** Returns bounds on the number of characters of matching texts; the true numbers may be closer together. */
export function lengthsOf(pattern: Pattern): readonly [least: number, most: number] {
  const parts = (patterns: readonly Pattern[]) => patterns.map(lengthsOf);
  const sum = (lengths: readonly number[]) => lengths.reduce((all, each) => all + each, 0);
  switch (pattern.kind) {
    case "set":
      return [1, 1];
    case "sequence": {
      const bounds = parts(pattern.parts);
      return [sum(bounds.map(([least]) => least)), sum(bounds.map(([, most]) => most))];
    }
    case "choice": {
      const bounds = parts(pattern.options);
      return [Math.min(...bounds.map(([least]) => least)), Math.max(...bounds.map(([, most]) => most))];
    }
    case "repeat": {
      const [least, most] = lengthsOf(pattern.part);
      return [least * pattern.least, most === 0 ? 0 : most * pattern.most];
    }
    case "both": {
      const bounds = parts(pattern.parts);
      return [Math.max(...bounds.map(([least]) => least)), Math.min(...bounds.map(([, most]) => most))];
    }
    default:
      return [0, Infinity];
  }
}
