/**
 * The products of unfused attention where some queries do not attend to some keys: what has no weight has no influence,
 * not even where it is NaN or infinite, which products of whole matrices would multiply with 0. The gradients of each
 * are made of the two, and so have this in every order.
 */

import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { eq, ne } from "../elementwise/comparison.ts";
import { logicalNot } from "../elementwise/logic.ts";
import { where } from "../elementwise/where.ts";
// biome-ignore lint/suspicious/noShadowRestrictedNames: PyTorch users know it by this name
import { Function, type FunctionContext } from "../gradient/function.ts";
import { matmul } from "../matmul/matmul.ts";
import { sumTo } from "../view/expand.ts";
import { transpose } from "../view/permute.ts";

const transposed = (x: Tensor): Tensor => transpose(x, -2, -1);

/**
 * Σⱼ weights[…, i, j] · rows[…, j, e] over the j whose weight is not 0.
 *
 * @param weights […, M, N]
 * @param rows […, N, E], of the same dtype; batches broadcast
 * @returns […, M, E]
 */
export const weightedSums = (weights: Tensor, rows: Tensor): Tensor => WeightedSums.apply(weights, rows);

/**
 * a[…, i, :] · b[…, j, :] of all pairs; in the gradients, a pair whose incoming gradient is 0 has no influence.
 *
 * @param a […, M, D]
 * @param b […, N, D], of the same dtype; batches broadcast
 * @returns […, M, N]
 */
export const pairProducts = (a: Tensor, b: Tensor): Tensor => PairProducts.apply(a, b);

class WeightedSums extends Function {
  static forward(context: FunctionContext, weights: Tensor, rows: Tensor): Tensor {
    context.saveForBackward(weights, rows);
    const areFinite = eq(mul(rows, 0), 0);
    const finite = matmul(weights, where(areFinite, rows, 0) as Tensor);
    const counts = matmul(toDType(ne(weights, 0), weights.dtype), toDType(logicalNot(areFinite), weights.dtype));
    return where(eq(counts, 0), finite, matmul(weights, rows)) as Tensor;
  }

  static backward(context: FunctionContext, gradient: Tensor | null): (Tensor | null)[] {
    const [weights, rows] = context.savedTensors as [Tensor, Tensor];
    const [needsWeights, needsRows] = context.needsInputGrad;
    return [
      needsWeights ? sumTo(pairProducts(gradient!, rows), weights.shape) : null,
      needsRows ? sumTo(weightedSums(transposed(weights), gradient!), rows.shape) : null,
    ];
  }
}

class PairProducts extends Function {
  static forward(context: FunctionContext, a: Tensor, b: Tensor): Tensor {
    context.saveForBackward(a, b);
    return matmul(a, transposed(b));
  }

  static backward(context: FunctionContext, gradient: Tensor | null): (Tensor | null)[] {
    const [a, b] = context.savedTensors as [Tensor, Tensor];
    const [needsA, needsB] = context.needsInputGrad;
    return [
      needsA ? sumTo(weightedSums(gradient!, b), a.shape) : null,
      needsB ? sumTo(weightedSums(transposed(gradient!), a), b.shape) : null,
    ];
  }
}
