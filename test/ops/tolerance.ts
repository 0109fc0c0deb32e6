/**
 * How far a result may be from the float64 oracle, in one place.
 *
 * `ulps`: each element within this many units in the last place of the oracle's value, after one rounding. For
 * elementwise operations.
 *
 * `flash`: FlashAttention's rule. The largest error is at most `factor` times (2 forward, 3 backward) that of the plain
 * computation in the same dtype, which rounds after each step, plus one rounding of the largest value. For all sums,
 * and for gradients: the error of an elementwise function's gradient may be larger by the function's `ulps`.
 *
 * `scaleUlps`: each element within this many units in the last place of the largest value. For oracles that round as
 * the library does, in another order.
 */
import type { DType } from "../../src/tensor/dtype.ts";
import { isFloat } from "../../src/tensor/dtype.ts";

export type Accuracy =
  | { readonly ulps: number }
  | { readonly flash: true; readonly ulps?: number }
  | { readonly scaleUlps: number };

/** Whether {@link compare} needs the results of the plain computation. */
export const readsPlain = (accuracy: Accuracy): boolean => "flash" in accuracy;

/** Distance from 1 to the next number. */
export const epsilon: Readonly<Partial<Record<DType, number>>> = {
  float64: 2 ** -52,
  float32: 2 ** -23,
  float16: 2 ** -10,
  bfloat16: 2 ** -7,
};

const smallestNormal: Readonly<Partial<Record<DType, number>>> = {
  float64: 2 ** -1022,
  float32: 2 ** -126,
  float16: 2 ** -14,
  bfloat16: 2 ** -126,
};

/** The unit in the last place of a value in a dtype. */
export function ulpOf(dtype: DType, value: number): number {
  const magnitude = Math.max(Math.abs(value), smallestNormal[dtype]!);
  return 2 ** Math.floor(Math.log2(magnitude)) * epsilon[dtype]!;
}

/** A difference that is too large. */
export interface Mismatch {
  readonly index: number;
  readonly got: number;
  readonly expected: number;
  readonly allowed: number;
  readonly largestAbsolute: number;
  readonly largestUlps: number;
}

const finiteOr0 = (value = 0): number => (Number.isFinite(value) ? value : 0);

/** The first element with too large an error; undefined if there is none. */
export function compare(
  dtype: DType,
  got: ArrayLike<number>,
  expected: readonly number[],
  plain: readonly number[] | undefined,
  accuracy: Accuracy,
  factor = 2,
  roundings?: readonly number[],
): Mismatch | undefined {
  const usual = allowance(dtype, expected, plain, accuracy, factor);
  const unit = dtype === "float64" ? 2 ** -53 : 2 ** -24; // narrower dtypes are computed in float32
  const allowed = (index: number) => Math.max(usual(index), finiteOr0(roundings?.[index]) * unit);
  let first: { index: number; allowed: number } | undefined;
  let largestAbsolute = 0;
  let largestUlps = 0;
  for (let index = 0; index < expected.length; index++) {
    const difference = differenceOf(got[index], expected[index], dtype);
    if (difference === 0) continue;
    largestAbsolute = Math.max(largestAbsolute, difference);
    if (isFloat(dtype)) largestUlps = Math.max(largestUlps, difference / ulpOf(dtype, expected[index]));
    const isClose = Number.isFinite(difference) && difference <= allowed(index);
    if (!first && !isClose) first = { index, allowed: allowed(index) };
  }
  return first && { ...first, got: got[first.index], expected: expected[first.index], largestAbsolute, largestUlps };
}

const largest: Readonly<Partial<Record<DType, number>>> = {
  float16: 65504,
  float32: 3.4028234663852886e38,
  bfloat16: 3.3895313892515355e38,
};

/** NaN equals NaN; a value beyond the dtype's range equals its infinity. */
function differenceOf(got: number, expected: number, dtype: DType): number {
  if (Number.isNaN(expected)) return Number.isNaN(got) ? 0 : Number.POSITIVE_INFINITY;
  const most = largest[dtype] ?? Number.MAX_VALUE;
  if (Math.abs(expected) > most && (got === Math.sign(expected) * Number.POSITIVE_INFINITY || Math.abs(got) === most))
    return Math.sign(got) === Math.sign(expected) ? 0 : Number.POSITIVE_INFINITY;
  if (got === expected) return 0;
  const difference = Math.abs(got - expected);
  return Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
}

function allowance(
  dtype: DType,
  expected: readonly number[],
  plain: readonly number[] | undefined,
  accuracy: Accuracy,
  factor: number,
): (index: number) => number {
  if (!isFloat(dtype)) return () => 0;
  if (!("flash" in accuracy || "scaleUlps" in accuracy))
    return (index) => (accuracy.ulps + 0.5) * ulpOf(dtype, expected[index]);
  const finite = expected.filter(Number.isFinite).map(Math.abs);
  const scale = finite.reduce((most, value) => Math.max(most, value), 0);
  if ("scaleUlps" in accuracy) return () => accuracy.scaleUlps * ulpOf(dtype, scale);
  const plainError = (plain ?? []).reduce((most, value, index) => {
    const error = Math.abs(value - expected[index]);
    return Number.isFinite(error) ? Math.max(most, error) : most;
  }, 0);
  const bound = factor * plainError + (1 + (accuracy.ulps ?? 0)) * ulpOf(dtype, scale);
  return () => bound;
}
