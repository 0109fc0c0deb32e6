/** Fused losses of single elements: one forward pass, one backward pass, and only the operands are saved. */
import { isGradEnabled, noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { capturing } from "../../backend/capture.ts";
import { execute, executeMany, underName } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import { broadcastShapes, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { composedGradients } from "../gradient/composed_gradients.ts";
import { expand } from "../view/expand.ts";
import { type ComposedLoss, composedLoss, type LossFormula } from "./composed_loss.ts";
import { lossCpu, lossGradientCpu } from "./loss.cpu.ts";
import { lossGradientMetal, lossMetal } from "./loss.metal.ts";
import { lossGradientReference, lossReference } from "./loss.reference.ts";
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

const NO_PARAMETERS = [0, 0] as const;

/** The name, the formula and the reduction of a loss of single elements. */
export interface ElementLoss extends ComposedLoss {
  readonly loss: LossName;
  /** The parameters of the formula. Default: none. */
  readonly parameters?: LossAttributes["parameters"];
  /** Operands after those with gradients, of x's shape and dtype. Default: none. */
  readonly constants?: readonly Tensor[];
}

/**
 * Computes the loss of operands of one float dtype, whose shapes broadcast, with their gradients.
 *
 * @param formula composes the losses of other operations: for gradients of gradients, and for ONNX files
 */
export function elementLoss<const Operands extends readonly [Tensor, Tensor, Tensor?]>(
  given: ElementLoss,
  operands: Operands,
  formula: LossFormula<Operands>,
): Tensor {
  const compose = (again: readonly Tensor[]) => composedLoss(given, again as never, formula as never);
  if (capturing() !== undefined) return compose(operands as readonly Tensor[]);
  return underName(given.operation, () => tidy(() => fusedLoss(given, operands as readonly Tensor[], compose)));
}

function fusedLoss(
  { operation, loss, reduction, parameters = NO_PARAMETERS, constants = [] }: ElementLoss,
  given: readonly Tensor[],
  compose: (operands: readonly Tensor[]) => Tensor,
): Tensor {
  const common = broadcastShapes(operation, ...given.map(({ shape }) => shape));
  const operands = given.map((each) => (sameShape(each.shape, common) ? each : expand(each, common)));
  const [x] = operands;
  const isSummed = reduction !== "none";
  const factor = reduction === "mean" ? 1 / x.size : 1;
  const { shape, dtype } = isSummed ? { shape: [], dtype: accumulationDType(x.dtype) } : x;
  const saved = [...operands, ...constants];
  const output = execute(lossPrimitive, saved, shape, dtype, { loss, isSummed, factor, parameters }, operation);
  const result = noGrad(() => toDType(output, x.dtype));
  record(operation, operands, [result], saved, ([gradient], again, needs) => {
    if (isGradEnabled()) return composedGradients(compose, again.slice(0, operands.length), needs, gradient);
    const needed = [needs[0], needs[1], needs[2] ?? false] as const;
    return gradients(again, gradient, { loss, factor, parameters, needs: needed }, operation);
  });
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
