/**
 * The reductions with one result, each with its definition on the list of elements of one result. C++ and Metal have
 * their formulas in `folds.h` of `native/cpu/reduction` and of `kernels/reduction`.
 */
import { sumOf } from "../../backend/reference/sum.ts";

export interface Formula {
  readonly float: (values: readonly number[], parameter: number) => number | boolean;
  /** The exact formula for integers, if the reduction accepts them. */
  readonly integer?: (values: readonly bigint[]) => bigint | boolean;
}

const largest = (values: readonly number[]): number =>
  values.reduce((best, value) => (best >= value || Number.isNaN(best) ? best : value), Number.NEGATIVE_INFINITY);
const smallest = (values: readonly number[]): number => -largest(values.map((value) => -value));

export const folds = {
  sum: { float: sumOf, integer: (values) => values.reduce((total, value) => total + value, 0n) },
  mean: { float: (values) => sumOf(values) / values.length },
  prod: {
    float: (values) => values.reduce((product, value) => product * value, 1),
    integer: (values) => values.reduce((product, value) => BigInt.asIntN(64, product * value), 1n),
  },
  amax: { float: largest, integer: (values) => values.reduce((best, value) => (value > best ? value : best)) },
  amin: { float: smallest, integer: (values) => values.reduce((best, value) => (value < best ? value : best)) },
  all: {
    float: (values) => values.every((value) => value !== 0),
    integer: (values) => values.every((value) => value !== 0n),
  },
  any: {
    float: (values) => values.some((value) => value !== 0),
    integer: (values) => values.some((value) => value !== 0n),
  },
  nansum: { float: (values) => sumOf(values.filter((value) => !Number.isNaN(value))) },
  nancount: { float: (values) => values.filter((value) => !Number.isNaN(value)).length },
  nanmax: { float: (values) => largest(numbersIn(values)) },
  nanmin: { float: (values) => smallest(numbersIn(values)) },
  norm0: { float: (values) => values.filter((value) => value !== 0).length },
  norm1: { float: (values) => sumOf(values.map(Math.abs)) },
  norm2: { float: (values) => Math.sqrt(sumOf(values.map((value) => value * value))) },
  normInf: { float: (values) => Math.max(0, largest(values.map(Math.abs))) },
  normNegInf: { float: (values) => smallest(values.map(Math.abs)) },
  normP: { float: (values, p) => sumOf(values.map((value) => Math.abs(value) ** p)) ** (1 / p) },
  var: { float: varianceOf },
  std: { float: (values, correction) => Math.sqrt(varianceOf(values, correction)) },
  logsumexp: { float: logSumExpOf },
} as const satisfies Readonly<Record<string, Formula>>;

/** Reductions with one result. */
export type FoldName = keyof typeof folds;

/** Returns the values that are not NaN, or all of them if all are. */
function numbersIn(values: readonly number[]): readonly number[] {
  const numbers = values.filter((value) => !Number.isNaN(value));
  return numbers.length > 0 ? numbers : values;
}

function varianceOf(values: readonly number[], correction: number): number {
  if (values.length === 0) return Number.NaN;
  const mean = sumOf(values) / values.length;
  return sumOf(values.map((value) => (value - mean) ** 2)) / Math.max(0, values.length - correction);
}

function logSumExpOf(values: readonly number[]): number {
  const top = largest(values);
  const shift = Math.abs(top) === Number.POSITIVE_INFINITY ? 0 : top;
  return shift + Math.log(sumOf(values.map((value) => Math.exp(value - shift))));
}
