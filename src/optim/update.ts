import { executeUpdate } from "../backend/dispatch.ts";
import { definePrimitive } from "../backend/primitive.ts";
import { coversStorage } from "../backend/snapshot.ts";
import { toDType } from "../ops/copy/cast.ts";
import { clone, contiguous, copyInto } from "../ops/copy/copy.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Batch, Member } from "./batch.ts";
import type { UpdateAttributes } from "./primitive.ts";
import type { Coefficients, RuleName } from "./rules.ts";
import { updateCpu } from "./update.cpu.ts";
import { updateMetal } from "./update.metal.ts";
import { updateReference } from "./update.reference.ts";

/**
 * Inputs: the state if there is one, the parameters and the gradients. Outputs: the new state and parameters. All are
 * dense.
 */
export const updatePrimitive = definePrimitive<UpdateAttributes>({
  name: "optimizerUpdate",
  family: "optim",
  implementations: { metal: updateMetal, cpu: updateCpu, reference: updateReference },
});

/** A member of a batch with its gradient and coefficients. */
export interface Step {
  readonly member: Member;
  readonly gradient: Tensor;
  readonly coefficients: Coefficients;
}

/** Updates members of a batch and their state. */
export function updateBatch(operation: string, rule: RuleName, batch: Batch, steps: readonly Step[]): void {
  const { state, plane, starts } = batch;
  const parameters = steps.map(({ member }) => member.parameter);
  const targets = parameters.map((parameter) => (coversStorage(parameter) ? parameter : clone(parameter)));
  const gradients = steps.map(({ gradient }, index) => denseGradient(gradient, parameters[index]));
  const attributes: UpdateAttributes = {
    rule,
    plane,
    hasState: state !== null,
    hasMaster: "master" in steps[0].member.state,
    members: steps.map(({ member, coefficients }) => ({ start: starts.get(member)!, coefficients })),
  };
  executeUpdate(updatePrimitive, state ? [state, ...targets] : targets, gradients, attributes, operation);
  for (const [index, target] of targets.entries())
    if (target !== parameters[index]) copyInto(parameters[index], target);
}

/** Makes a gradient row-major. Kernels accept any mix of float dtypes, except that float64 goes with float64 only. */
function denseGradient(gradient: Tensor, { dtype }: Tensor): Tensor {
  return contiguous(
    gradientDType(gradient, dtype) === gradient.dtype ? gradient : toDType(gradient, gradientDType(gradient, dtype)),
  );
}

/** Returns the dtype in which a gradient enters a step. */
export const gradientDType = ({ dtype }: Tensor, parameter: Tensor["dtype"]): Tensor["dtype"] =>
  parameter === "float64" ? "float64" : dtype === "float64" ? "float32" : dtype;
