import type { Tensor } from "../tensor/tensor.ts";
import { gradEnabled } from "./modes.ts";
import { type BackwardRule, GraphNode } from "./node.ts";

/** Whether an operation on these inputs must be recorded. */
export function needsGradient(...inputs: readonly Tensor[]): boolean {
  for (const input of inputs) if (input.requiresGrad) return gradEnabled.get();
  return false;
}

/**
 * Records an operation in the graph if one of its inputs needs a gradient.
 *
 * @param save the inputs or outputs that the rule needs; backward passes them to the rule and frees them
 * @param rule uses differentiable operations, so gradients of gradients need no extra code
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
