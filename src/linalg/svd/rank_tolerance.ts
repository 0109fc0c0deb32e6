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
import { unsqueeze } from "../../ops/view/squeeze.ts";
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

export type Tolerances = Readonly<Partial<Record<"atol" | "rtol", number | Tensor | undefined>>>;

/**
 * Returns which values are above max(atol, rtol · the largest one) in absolute value.
 *
 * @param values […, k], of the matrix `a`; k > 0
 */
export function areSignificant(values: Tensor, a: Tensor, { atol, rtol }: Tolerances): Tensor {
  const usual = Math.max(...a.shape.slice(-2)) * epsilonOf(a.dtype);
  const least = ofMatrices(atol ?? 0, values);
  const relative = rtol === undefined ? where(gt(least, 0), 0, usual) : ofMatrices(rtol, values);
  const sizes = abs(values);
  return gt(sizes, maximum(mul(amax(sizes, -1, true), relative), least));
}

/** A tolerance per matrix, with an axis that broadcasts over its values. */
const ofMatrices = (given: number | Tensor, { dtype }: Tensor): Tensor =>
  unsqueeze(typeof given === "number" ? full([], given, { dtype }) : toDType(given, dtype), -1);
