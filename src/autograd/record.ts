import { isComplex } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type Conjugation, conjugated } from "./conjugate.ts";
import { gradEnabled } from "./modes.ts";
import { type BackwardRule, type ForwardRule, GraphNode } from "./node.ts";

/**
 * The gradients of the outputs. A node runs if one of them has a gradient, so the gradient of a single output is never
 * null.
 */
type Incoming<Outputs extends readonly Tensor[]> = Outputs["length"] extends 1
  ? readonly [Tensor]
  : { readonly [At in keyof Outputs]: Tensor | null };

/** {@link BackwardRule} with the number of tensors and the dtypes of a call. */
type RuleOf<Inputs extends readonly Tensor[], Outputs extends readonly Tensor[], Saved extends readonly Tensor[]> = (
  gradients: Incoming<Outputs>,
  saved: Saved,
  needs: { readonly [At in keyof Inputs]: boolean },
) => readonly (Tensor | null)[];

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
 * @param conjugation for complex numbers: by default the rule is `g · f′` of a holomorphic function, which is
 *   conjugated; with `"none"` it returns ∂L/∂re + i·∂L/∂im itself
 * @param forward the rule of tangents, for a rule that is not differentiable
 */
export function record<
  const Inputs extends readonly Tensor[],
  const Outputs extends readonly Tensor[],
  const Saved extends readonly Tensor[],
>(
  operation: string,
  inputs: Inputs,
  outputs: Outputs,
  save: Saved,
  rule: RuleOf<Inputs, Outputs, Saved>,
  conjugation: Conjugation = "holomorphic",
  forward?: ForwardRule,
): void {
  if (!needsGradient(...inputs)) return;
  const isConjugated = conjugation === "holomorphic" && outputs.some(({ dtype }) => isComplex(dtype));
  // A node passes its rule as many tensors as the operation has inputs and outputs.
  const passed = (isConjugated ? conjugated(rule) : rule) as BackwardRule;
  const node = new GraphNode(operation, inputs, outputs, save, passed);
  if (forward) node.forward = forward;
}
