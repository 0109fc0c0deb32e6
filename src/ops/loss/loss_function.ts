/** Fused elementwise losses: one forward pass, one backward pass, and only the operands are saved. */
import { isGradEnabled, noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { composedGradients } from "../gradient/composed_gradients.ts";
import { expand } from "../view/expand.ts";
import { lossCpu, lossGradientCpu } from "./loss.cpu.ts";
import { lossGradientMetal, lossMetal } from "./loss.metal.ts";
import { lossGradientReference, lossReference } from "./loss.reference.ts";
import type { LossReduction } from "./options.ts";
import type { LossAttributes, LossGradientAttributes, LossName } from "./primitive.ts";

const lossPrimitive = definePrimitive<LossAttributes>({
  name: "loss",
  family: "loss",
  implementations: { metal: lossMetal, cpu: lossCpu, reference: lossReference },
});

const lossGradientPrimitive = definePrimitive<LossGradientAttributes>({
  name: "lossGradient",
  family: "loss",
  implementations: { metal: lossGradientMetal, cpu: lossGradientCpu, reference: lossGradientReference },
});

/** An elementwise loss. */
export interface ElementLoss {
  /** The public function, for errors. */
  readonly operation: string;
  readonly loss: LossName;
  readonly reduction: LossReduction;
  /** Composes the loss of other operations, from x and the target. */
  readonly composed: (x: Tensor, target: Tensor) => Tensor;
}

/** Computes the loss of x and a target, with gradients. @param weights of x's shape and dtype; not differentiable */
export function fusedLoss(x: Tensor, target: Tensor, weights: readonly Tensor[], given: ElementLoss): Tensor {
  const { operation, loss, reduction, composed } = given;
  const isSummed = reduction !== "none";
  const attributes: LossAttributes = { loss, isSummed, factor: reduction === "mean" ? 1 / x.size : 1 };
  const { shape, dtype } = isSummed ? { shape: [], dtype: accumulationDType(x.dtype) } : x;
  const output = execute(lossPrimitive, [x, target, ...weights], shape, dtype, attributes, operation);
  const result = noGrad(() => toDType(output, x.dtype));
  record(operation, [x, target], [result], [x, target, ...weights], ([gradient], [a, t, ...others], needs) =>
    isGradEnabled()
      ? composedGradients(([input, goal]) => composed(input, goal), [a, t], needs, gradient)
      : gradients(
          [a, t, ...others],
          gradient,
          { loss, factor: attributes.factor, needs: [needs[0], needs[1]] },
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
  const { shape, dtype } = operands[0];
  const scale = expand(toDType(gradient, accumulationDType(dtype)), shape);
  const specs = attributes.needs.flatMap((isNeeded) => (isNeeded ? [{ shape, dtype }] : []));
  const found = executeMany(lossGradientPrimitive, [scale, ...operands], specs, attributes, operation);
  return attributes.needs.map((isNeeded) => (isNeeded ? found.shift()! : null));
}
