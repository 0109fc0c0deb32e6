import type { Tensor } from "../tensor/tensor.ts";
import { gradEnabled } from "./modes.ts";
import { type BackwardRule, GraphNode } from "./node.ts";

/** Whether an operation on these inputs is to be recorded. */
export function needsGradient(...inputs: readonly Tensor[]): boolean {
  for (const input of inputs) if (input.requiresGrad) return gradEnabled.get();
  return false;
}

/**
 * Records an operation on the tape, where one of its inputs needs a gradient.
 *
 * @param save what the rule needs of the forward, inputs or outputs; backward gives it to the rule and frees it
 * @param rule written in differentiable operations, so that gradients of gradients come for free
 */
export function record(
  operation: string,
  inputs: readonly Tensor[],
  outputs: readonly Tensor[],
  save: readonly Tensor[],
  rule: BackwardRule,
): void {
  if (needsGradient(...inputs)) new GraphNode(operation, inputs, outputs, save, rule);
}
