/** Tolerances that decide which singular values count as 0. */
import { aNumber, either, flag } from "../../core/kinds.ts";
import { notNegative } from "../../core/options.ts";
import { named } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { full } from "../../ops/creation/full.ts";
import { abs, mul } from "../../ops/elementwise/arithmetic.ts";
import { gt } from "../../ops/elementwise/comparison.ts";
import { maximum } from "../../ops/elementwise/extrema.ts";
import { where } from "../../ops/elementwise/where.ts";
import { amax } from "../../ops/reduction/extrema.ts";
import { narrow } from "../../ops/view/slice.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { realDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { epsilonOf } from "../matrices.ts";

/** Options that decide which singular values count as 0. */
export interface RankOptions {
  /** Singular values up to this count as 0: a number, or a tensor with one per matrix. Default 0. */
  atol?: number | Tensor | undefined;
  /**
   * Singular values up to this fraction of the largest count as 0: a number, or a tensor with one per matrix. Default 0
   * if `atol` is above 0, else max(m, n) ε, where ε is the machine epsilon of the compute dtype.
   */
  rtol?: number | Tensor | undefined;
  /** Assumes that matrices are symmetric, and reads only their lower triangle. Default false. */
  hermitian?: boolean;
}

const tolerance = either(aNumber(notNegative), aTensor);
export const rankParameters = {
  atol: named(tolerance),
  rtol: named(tolerance),
  hermitian: named(flag, false),
} as const;

/**
 * Returns which values are above max(atol, rtol · the largest one) in absolute value.
 *
 * @param values […, k], of the matrix `a`; k > 0. They are eigenvalues if `hermitian`, else descending singular values.
 */
export function areSignificant(values: Tensor, a: Tensor, { atol = 0, rtol, hermitian }: RankOptions): Tensor {
  const sizes = hermitian ? abs(values) : values;
  const largest = hermitian ? amax(sizes, -1, true) : narrow(values, -1, 0, 1);
  const least = ofMatrices(atol, values);
  const limit = mul(largest, ofMatrices(rtol ?? usualFraction(atol, a), values));
  return gt(sizes, least === 0 ? limit : maximum(limit, least));
}

/** Returns the `rtol` that is used by default. */
function usualFraction(atol: number | Tensor, { shape, dtype }: Tensor): number | Tensor {
  const usual = Math.max(...shape.slice(-2)) * epsilonOf(dtype);
  if (typeof atol === "number") return atol > 0 ? 0 : usual;
  return where(gt(atol, 0), 0, full([], usual, { dtype: realDType(dtype) }));
}

/** Gives a tensor with a tolerance per matrix an axis that broadcasts over the matrix's values. */
const ofMatrices = (given: number | Tensor, { dtype }: Tensor): number | Tensor =>
  typeof given === "number" ? given : unsqueeze(toDType(given, dtype), -1);
