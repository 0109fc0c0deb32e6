/** Decays of a state within a chunk of tokens. */

import { lastElement } from "../../../../core/collections.ts";
import { ones } from "../../../../ops/creation/full.ts";
import { sub } from "../../../../ops/elementwise/arithmetic.ts";
import { exp } from "../../../../ops/elementwise/exponential.ts";
import { where } from "../../../../ops/elementwise/where.ts";
import { tril } from "../../../../ops/indexing/triangle.ts";
import { cumsum } from "../../../../ops/scan/cumsum.ts";
import { narrow } from "../../../../ops/view/slice.ts";
import { unsqueeze } from "../../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";

/** @internal The number of tokens that are computed as products of matrices. */
export const CHUNK = 64;

/** Factors by which states and contributions of tokens decay within a chunk. */
export interface Decays {
  /** Decay from token j to token i ≥ j, and 0 for i < j: [..., i, j]. */
  readonly within: Tensor;
  /** Decay from before the chunk to each token: [..., tokens, 1]. */
  readonly fromStart: Tensor;
  /** Decay from each token to the end of the chunk: [..., tokens, 1]. */
  readonly toEnd: Tensor;
  /** Decay over the whole chunk: [..., 1, 1]. */
  readonly whole: Tensor;
}

/** @internal Returns the decays of logarithms [..., tokens]: token t multiplies the state by exp(logs[t]). */
export function decaysOf(logs: Tensor): Decays {
  const count = lastElement(logs.shape);
  const sums = cumsum(logs, -1);
  const last = narrow(sums, -1, count - 1, 1);
  const isEarlier = tril(ones([count, count], { dtype: "bool" }));
  const distances = sub(unsqueeze(sums, -1), unsqueeze(sums, -2));
  return {
    within: exp(where(isEarlier, distances, -Infinity)),
    fromStart: unsqueeze(exp(sums), -1),
    toEnd: unsqueeze(exp(sub(last, sums)), -1),
    whole: unsqueeze(exp(last), -1),
  };
}
