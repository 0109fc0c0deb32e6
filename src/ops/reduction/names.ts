/** The reductions, in the order of `native/cpu/reduction/reduction.h` and `kernels/reduction/codes.h`: a code is a place. */

/** Those with one result. */
export const foldNames = [
  "sum",
  "mean",
  "prod",
  "amax",
  "amin",
  "all",
  "any",
  "norm0",
  "norm1",
  "norm2",
  "normInf",
  "normNegInf",
  "normP",
  "var",
  "std",
  "logsumexp",
] as const;
export type FoldName = (typeof foldNames)[number];

/** Those with a value and its index. */
export const extremumNames = ["max", "min"] as const;
export type ExtremumName = (typeof extremumNames)[number];

export type ReductionName = FoldName | ExtremumName;
export const reductionNames: readonly ReductionName[] = [...foldNames, ...extremumNames];

export interface ReductionAttributes {
  /** Axes that are reduced, ascending. */
  readonly axes: readonly number[];
  /** p of a norm, correction of a variance; 0 elsewhere. */
  readonly parameter: number;
}

/**
 * Functions of an element x and a result y, in the order of the native kernels. tie: 1 where x = y, NaN counting as equal. sign: of x.
 * quotient: x / y. power: sign(x) |x|^(p−1) y^(1−p). All are 0 elsewhere, and where they would divide by 0.
 */
export const slopeNames = ["tie", "sign", "quotient", "power"] as const;
export type SlopeName = (typeof slopeNames)[number];

export interface SlopeAttributes {
  readonly name: SlopeName;
  /** p of `power`. */
  readonly parameter: number;
}

export interface SelectAttributes {
  /** The axis along which an index counts. */
  readonly axis: number;
}
