/** Which singular values count as 0. */
import { aNumber, flag } from "../../core/kinds.ts";
import { notNegative } from "../../core/options.ts";
import { named } from "../../core/parameters.ts";
import { abs, mul } from "../../ops/elementwise/arithmetic.ts";
import { gt } from "../../ops/elementwise/comparison.ts";
import { maximum } from "../../ops/elementwise/extrema.ts";
import { amax } from "../../ops/reduction/extrema.ts";
import { orElement } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** Options of what decides by tolerances which singular values are 0. */
export interface RankOptions {
  /** Singular values up to this one are 0: a number, or a tensor without axes. Default 0. */
  atol?: number | Tensor | undefined;
  /**
   * Singular values up to this part of the largest one are 0. Default 0 where `atol` is above 0, else max(m, n) ε with
   * the distance ε from 1 to the next number of the dtype that it is computed in.
   */
  rtol?: number | Tensor | undefined;
  /** Whether matrices are taken to be symmetric: only their lower triangle is read. Default false. */
  hermitian?: boolean;
}

export const rankParameters = {
  atol: named(orElement(aNumber(notNegative))),
  rtol: named(orElement(aNumber(notNegative))),
  hermitian: named(flag, false),
} as const;

/** The same, as numbers. */
export type Tolerances = Readonly<Partial<Record<"atol" | "rtol", number | undefined>>>;

/**
 * Which values' sizes are above max(atol, rtol · the largest one).
 *
 * @param values […, k], of the matrix `a`; k > 0
 */
export function areSignificant(values: Tensor, a: Tensor, { atol, rtol }: Tolerances): Tensor {
  const epsilon = a.dtype === "float64" ? 2 ** -52 : 2 ** -23;
  const relative = rtol ?? (atol ? 0 : Math.max(...a.shape.slice(-2)) * epsilon);
  const sizes = abs(values);
  return gt(sizes, maximum(mul(amax(sizes, -1, true), relative), atol ?? 0));
}
