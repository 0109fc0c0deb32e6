/** Patterns of the digits of numbers within bounds. */
import { rangeOf, union } from "./code_points.ts";
import { both, choice, empty, literal, not, nothing, type Pattern, repeat, sequence, setOf } from "./pattern.ts";

/** Conditions on a number. */
export interface NumberFacts {
  readonly least: number;
  readonly most: number;
  /** The number must be a multiple of each of these. */
  readonly multiples: readonly number[];
  /** The number must not be a multiple of any of these. */
  readonly nonMultiples: readonly number[];
  /** Values that the number must not have. */
  readonly excluded: readonly number[];
}

/** Maximum digits that JavaScript writes without an exponent, before and after the decimal point. */
const [MOST_DIGITS, MOST_PLACES] = [21, 25];
/** Numbers with up to this many digits are distinct in float64. */
const EXACT_DIGITS = 15;
/** The smallest relevant bound. Among the numbers written without an exponent, a bound closer to 0 excludes only 0. */
const LEAST_DECIMAL = 10 ** -MOST_PLACES;

const digit = (first: number, last: number): Pattern =>
  first > last ? nothing : setOf(rangeOf(48 + first, 48 + last));
const digits = (least: number, most: number): Pattern => (most < least ? nothing : repeat(digit(0, 9), least, most));

/**
 * Returns the pattern of numbers. Whole numbers have no decimal point or exponent; others have an exponent only if
 * JavaScript writes one. Multiples are limited to those that are exact in float64.
 */
export function numberPattern({ least, most, multiples, nonMultiples, excluded }: NumberFacts): Pattern {
  if (least > most) return nothing;
  const isWhole = multiples.some(Number.isInteger);
  const divisors = multiples.filter((divisor) => divisor !== 1);
  const isExact = divisors.length + nonMultiples.length + excluded.length > 0;
  const fewest = divisors.length > 0 ? Math.max(...divisors.map(placesOf)) : Math.floor(EXACT_DIGITS / 2);
  const places = isWhole ? 0 : isExact ? fewest : MOST_PLACES;
  const size = isExact ? EXACT_DIGITS - places : MOST_DIGITS;
  const limit = isExact ? 10 ** size : Infinity;
  const half = (from: number, to: number, isNegative: boolean) => {
    const digits = unsigned(from, Math.min(to, limit), { places, size, isNegative, hasExponents: !isExact });
    const texts = excluded.filter((value) => value < 0 === isNegative).map((value) => textOf(Math.abs(value)));
    return both([digits, ...divisors.map(multipleOf), ...[...nonMultiples.map(multipleOf), ...texts].map(not)]);
  };
  const positive = most < 0 ? nothing : half(Math.max(0, least), most, false);
  const negative = least >= 0 ? nothing : sequence([literal("-"), half(Math.max(0, -most), -least, true)]);
  return choice([positive, negative]);
}

/** Matches a number, with optional zeros after the decimal point. */
function textOf(value: number): Pattern {
  const [whole, fraction] = decimalOf(value);
  const zeros = repeat(literal("0"), 0, Infinity);
  return fraction === ""
    ? sequence([literal(whole), repeat(sequence([literal("."), zeros]), 0, 1)])
    : sequence([literal(`${whole}.${fraction}`), zeros]);
}

/** Splits a positive decimal into its digits before and after the point, without trailing zeros. */
function decimalOf(value: number): readonly [whole: string, fraction: string] {
  if (value === Infinity) return ["9".repeat(MOST_EXPONENT + 3), ""];
  const [mantissa, exponent = "0"] = String(value).split("e") as [string, string?];
  const [whole, fraction = ""] = mantissa.split(".") as [string, string?];
  const [all, point] = [whole + fraction, whole.length + Number(exponent)];
  const padded = point <= 0 ? "0".repeat(1 - point) + all : all.padEnd(point, "0");
  const at = Math.max(1, point);
  return [padded.slice(0, at), padded.slice(at)];
}

/** Returns the number of digits after the decimal point. */
export const placesOf = (value: number): number => decimalOf(value)[1].length;

function multipleOf(value: number): Pattern {
  const places = placesOf(value);
  return { kind: "multiple", of: Math.round(value * 10 ** places), rest: 0, places, isAfterPoint: false };
}

interface Writing {
  readonly places: number;
  readonly size: number;
  /** Whether the number follows a minus sign. It then can't be 0. */
  readonly isNegative: boolean;
  readonly hasExponents: boolean;
}

/** Matches non-negative numbers. */
function unsigned(least: number, most: number, { places, size, isNegative, hasExponents }: Writing): Pattern {
  const [low, lowFraction] = decimalOf(least);
  const [high, highFraction] = decimalOf(Math.min(most, 10 ** Math.max(size, low.length)));
  if (places === 0) {
    const from = BigInt(low) + (lowFraction === "" ? 0n : 1n);
    return wholeBetween(isNegative && from === 0n ? 1n : from, BigInt(high));
  }
  const isTiny = least > 0 && least < LEAST_DECIMAL;
  const all = Math.max(places, highFraction.length, isTiny ? 0 : lowFraction.length);
  const fixed = fixedBetween(isTiny ? ["0", ""] : [low, lowFraction], [high, highFraction], all);
  const options = [isTiny || (isNegative && least === 0) ? both([fixed, not(textOf(0))]) : fixed];
  if (hasExponents && least < 1e-99 && most >= 1e-6) options.push(exponent(literal("-"), small));
  if (hasExponents && least <= 1e21) options.push(exponent(repeat(literal("+"), 0, 1), large(most)));
  return choice(options);
}

const exponent = (sign: Pattern, signed: Pattern): Pattern =>
  sequence([
    digit(1, 9),
    repeat(sequence([literal("."), digits(1, MOST_PLACES)]), 0, 1),
    setOf(union(rangeOf(0x45), rangeOf(0x65))),
    sign,
    signed,
  ]);
/** JavaScript writes exponents from 1e-7 down. Three-digit exponents are excluded: they approach float64's limits. */
const small = choice([sequence([repeat(literal("0"), 0, 1), digit(7, 9)]), sequence([digit(1, 9), digit(0, 9)])]);
const MOST_EXPONENT = 99;
/** Matches the exponents for which a number can't exceed a bound, regardless of its digits. */
const large = (most: number): Pattern => {
  const last = most < 10 ** MOST_DIGITS ? 0 : Math.min(MOST_EXPONENT, decimalOf(most)[0].length - 2);
  return wholeBetween(BigInt(MOST_DIGITS), BigInt(last));
};

/** Matches whole numbers from `first` to `last`, inclusive. */
function wholeBetween(first: bigint, last: bigint): Pattern {
  if (first > last) return nothing;
  const [from, to] = [String(first), String(last)];
  const options: Pattern[] = [];
  for (let length = from.length; length <= to.length; length++) {
    const low = length === from.length ? from : `1${"0".repeat(length - 1)}`;
    const high = length === to.length ? to : "9".repeat(length);
    options.push(digitsBetween(low, high));
  }
  return choice(options);
}

/** Matches numbers between two bounds with the same number of digits. */
function digitsBetween(low: string, high: string): Pattern {
  if (low === "") return empty;
  if (/^0*$/.test(low) && /^9*$/.test(high)) return digits(low.length, low.length);
  const [first, last, length] = [Number(low[0]), Number(high[0]), low.length - 1];
  const [lowRest, highRest] = [low.slice(1), high.slice(1)];
  if (first === last) return sequence([digit(first, first), digitsBetween(lowRest, highRest)]);
  return choice([
    sequence([digit(first, first), digitsBetween(lowRest, "9".repeat(length))]),
    sequence([digit(first + 1, last - 1), digits(length, length)]),
    sequence([digit(last, last), digitsBetween("0".repeat(length), highRest)]),
  ]);
}

type Decimal = readonly [whole: string, fraction: string];

function fixedBetween([low, lowFraction]: Decimal, [high, highFraction]: Decimal, places: number): Pattern {
  const above = fraction(atLeast(lowFraction, places, 1), lowFraction === "");
  const below = fraction(atMost(highFraction, places, 1), true);
  if (low === high) return sequence([literal(low), both([above, below])]);
  return choice([
    sequence([literal(low), above]),
    sequence([wholeBetween(BigInt(low) + 1n, BigInt(high) - 1n), fraction(digits(1, places), true)]),
    sequence([literal(high), below]),
  ]);
}

/** Matches a decimal point and digits, optionally. */
const fraction = (digits: Pattern, isOptional: boolean): Pattern =>
  repeat(sequence([literal("."), digits]), isOptional ? 0 : 1, 1);

/** Matches the digits of a fraction that is at least a bound. */
function atLeast(bound: string, places: number, fewest: 0 | 1): Pattern {
  if (bound === "") return digits(fewest, places);
  const first = Number(bound[0]);
  return choice([
    sequence([digit(first + 1, 9), digits(0, places - 1)]),
    sequence([digit(first, first), atLeast(bound.slice(1), places - 1, 0)]),
  ]);
}

/** Matches the digits of a fraction that is at most a bound. */
function atMost(bound: string, places: number, fewest: 0 | 1): Pattern {
  if (bound === "") return repeat(digit(0, 0), fewest, places);
  const first = Number(bound[0]);
  return choice([
    ...(fewest === 0 ? [empty] : []),
    sequence([digit(0, first - 1), digits(0, places - 1)]),
    sequence([digit(first, first), atMost(bound.slice(1), places - 1, 0)]),
  ]);
}

/** Returns the next larger float64. */
export function nextAfter(value: number): number {
  if (value === 0) return Number.MIN_VALUE;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  view.setBigInt64(0, view.getBigInt64(0) + (value > 0 ? 1n : -1n));
  return view.getFloat64(0);
}
