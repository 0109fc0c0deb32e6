/**
 * Products for unfused attention with masked pairs. A row with weight 0 has no effect, even if it is NaN or infinite; a
 * plain matrix product would give 0 · NaN = NaN. The gradient of each product is composed of these two, so this holds
 * for gradients of every order.
 */

import { tupleOf } from "../../core/tuples.ts";
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
 * Computes Σⱼ weights[…, i, j] · rows[…, j, e] over the j whose weight is not 0.
 *
 * @param weights […, M, N]
 * @param rows […, N, E], of the same dtype; batches broadcast
 * @returns […, M, E]
 */
export const weightedSums = (weights: Tensor, rows: Tensor): Tensor => WeightedSums.apply(weights, rows);

/**
 * Computes a[…, i, :] · b[…, j, :] for all pairs. Pairs whose incoming gradient is 0 do not affect the gradients.
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
    const finite = matmul(weights, where(areFinite, rows, 0));
    const counts = matmul(toDType(ne(weights, 0), weights.dtype), toDType(logicalNot(areFinite), weights.dtype));
    return where(eq(counts, 0), finite, matmul(weights, rows));
  }

  static backward(context: FunctionContext, gradient: Tensor | null): (Tensor | null)[] {
    const [weights, rows] = tupleOf(context.savedTensors, 2);
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
    const [a, b] = tupleOf(context.savedTensors, 2);
    const [needsA, needsB] = context.needsInputGrad;
    return [
      needsA ? sumTo(weightedSums(gradient!, b), a.shape) : null,
      needsB ? sumTo(weightedSums(transposed(gradient!), a), b.shape) : null,
    ];
  }
}
