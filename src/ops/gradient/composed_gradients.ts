import type { Tensor } from "../../tensor/tensor.ts";
import { grad } from "./backward.ts";

/**
 * The gradients of a result that is made of other operations, as differentiable as these: the rules of fused operations
 * return them where gradients of gradients are needed. What is saved then is as large as the operands, several times.
 *
 * @param needs which of the inputs need a gradient
 */
export function composedGradients(
  compute: (inputs: readonly Tensor[]) => Tensor,
  inputs: readonly Tensor[],
  needs: readonly boolean[],
  gradient: Tensor,
): (Tensor | null)[] {
  const needed = inputs.filter((_, at) => needs[at]);
  const found = grad([compute(inputs)], needed, { gradOutputs: [gradient], createGraph: true });
  return inputs.map((_, at) => (needs[at] ? found.shift()! : null));
}
