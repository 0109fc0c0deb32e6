/** Cross entropy composed of other operations, differentiable to any order. */
import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, neg } from "../elementwise/arithmetic.ts";
import { eq } from "../elementwise/comparison.ts";
import { div } from "../elementwise/division.ts";
import { logicalNot } from "../elementwise/logic.ts";
import { where } from "../elementwise/where.ts";
import { gather, indexSelect } from "../indexing/gather.ts";
import type { IndexDType } from "../indexing/indices.ts";
import { maskedFill } from "../indexing/masked_fill.ts";
import { sum } from "../reduction/sum.ts";
import { logSoftmax } from "../softmax/softmax.ts";
import { flatten } from "../view/flatten.ts";
import { reshape } from "../view/reshape.ts";
import { squeeze, unsqueeze } from "../view/squeeze.ts";
import type { CrossEntropyCall } from "./options.ts";
import { reduced } from "./reduced.ts";

/** Computes the cross entropy of class indices. */
export function fromClasses(logits: Tensor, targets: Tensor<IndexDType>, call: CrossEntropyCall): Tensor {
  const logarithms = logSoftmax(toDType(logits, accumulationDType(logits.dtype)), { dim: call.axis });
  return toDType(ofLogarithms(logarithms, targets, call), logits.dtype);
}

/** Computes the cross entropy of class indices from log probabilities. */
export function ofLogarithms(given: Tensor, targets: Tensor<IndexDType>, call: CrossEntropyCall): Tensor {
  const { axis, ignoreIndex, labelSmoothing, reduction } = call;
  const logarithms = toDType(given, accumulationDType(given.dtype));
  const ignored = eq(targets, ignoreIndex);
  const safe = where(ignored, 0n, targets);
  const picked = squeeze(gather(logarithms, unsqueeze(safe, axis), { dim: axis }), { dim: axis });
  if (!call.weight && labelSmoothing === 0) {
    const losses = maskedFill(neg(picked), ignored, 0);
    const counts = () => sum(toDType(logicalNot(ignored), losses.dtype));
    return toDType(reduction === "mean" ? div(sum(losses), counts()) : reduced(losses, reduction), given.dtype);
  }
  const factors = maskedFill(factorsOf(safe, given, call), ignored, 0);
  const terms = mul(maskedFill(picked, ignored, 0), factors);
  const losses = neg(
    labelSmoothing === 0
      ? terms
      : add(
          mul(terms, 1 - labelSmoothing),
          maskedFill(mul(weighted(logarithms, call), labelSmoothing / given.shape[axis]), ignored, 0),
        ),
  );
  const result = reduction === "mean" ? div(sum(losses), sum(factors)) : reduced(losses, reduction);
  return toDType(result, given.dtype);
}

/** Returns the factor of each target's class. */
function factorsOf(targets: Tensor<IndexDType>, logits: Tensor, { weight }: CrossEntropyCall): Tensor {
  const dtype = accumulationDType(logits.dtype);
  if (!weight) return toDType(eq(targets, targets), dtype);
  return reshape(indexSelect(toDType(weight, dtype), flatten(targets), { dim: 0 }), targets.shape);
}

/** Computes Σ w[c] log p[c]. */
const weighted = (logarithms: Tensor, { axis, weight }: CrossEntropyCall): Tensor =>
  sum(weight ? mul(logarithms, along(weight, logarithms, axis)) : logarithms, { dim: axis });

/** Reshapes the classes' factors so that they broadcast to the logits. */
export const along = (weight: Tensor, { dtype, rank }: Tensor, axis: number): Tensor =>
  reshape(toDType(weight, dtype), [weight.size, ...new Array<number>(rank - 1 - axis).fill(1)]);

/** Computes the cross entropy of class probabilities. */
export function fromProbabilities(logits: Tensor, targets: Tensor, call: CrossEntropyCall): Tensor {
  const { axis, labelSmoothing, weight, reduction } = call;
  const dtype = accumulationDType(logits.dtype);
  const logarithms = logSoftmax(toDType(logits, dtype), { dim: axis });
  const probabilities = toDType(targets, dtype);
  const shares =
    labelSmoothing === 0
      ? probabilities
      : add(mul(probabilities, 1 - labelSmoothing), labelSmoothing / logits.shape[axis]);
  const terms = mul(logarithms, shares);
  const losses = neg(sum(weight ? mul(terms, along(weight, terms, axis)) : terms, { dim: axis }));
  return toDType(reduced(losses, reduction), logits.dtype);
}
