/** Losses of one element each on the tape: one pass forward, one backward, and nothing kept but the operands. */
import { isGradEnabled, noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { expand } from "../view/expand.ts";
import { composedGradients } from "./composed_gradients.ts";
import {
  type LossAttributes,
  type LossGradientAttributes,
  lossGradientPrimitive,
  lossPrimitive,
} from "./loss_primitives.ts";
import type { LossName } from "./names.ts";
import type { LossReduction } from "./options.ts";
import { wideOf } from "./reduced.ts";

/** A loss of one element each. */
export interface ElementLoss {
  /** The public function, for errors. */
  readonly operation: string;
  readonly name: LossName;
  readonly reduction: LossReduction;
  /** The same of other operations, from x and the target. */
  readonly composed: (x: Tensor, target: Tensor) => Tensor;
}

/** @param weights of x's shape and dtype, which have no gradient */
export function fusedLoss(x: Tensor, target: Tensor, weights: readonly Tensor[], loss: ElementLoss): Tensor {
  const { operation, name, reduction, composed } = loss;
  const isSummed = reduction !== "none";
  const attributes: LossAttributes = { name, isSummed, factor: reduction === "mean" ? 1 / x.size : 1 };
  const { shape, dtype } = isSummed ? { shape: [], dtype: wideOf(x.dtype) } : x;
  const output = execute(lossPrimitive, [x, target, ...weights], shape, dtype, attributes, operation);
  const result = noGrad(() => toDType(output, x.dtype));
  record(operation, [x, target], [result], [x, target, ...weights], ([gradient], [a, t, ...rest], needs) =>
    isGradEnabled()
      ? composedGradients(([own, ofTarget]) => composed(own!, ofTarget!), [a!, t!], needs, gradient!)
      : gradients(
          [a!, t!, ...rest],
          gradient!,
          { name, factor: attributes.factor, needs: [needs[0]!, needs[1]!] },
          operation,
        ),
  );
  return result;
}

function gradients(
  operands: readonly Tensor[],
  gradient: Tensor,
  attributes: LossGradientAttributes,
  operation: string,
): (Tensor | null)[] {
  const { shape, dtype } = operands[0]!;
  const scale = expand(toDType(gradient, wideOf(dtype)), shape);
  const specs = attributes.needs.flatMap((isNeeded) => (isNeeded ? [{ shape, dtype }] : []));
  const found = executeMany(lossGradientPrimitive, [scale, ...operands], specs, attributes, operation);
  return attributes.needs.map((isNeeded) => (isNeeded ? found.shift()! : null));
}
