import type { Tensor } from "../../tensor/tensor.ts";
import { grad } from "../gradient/backward.ts";

/**
 * The gradients of a loss that is made of other operations, as differentiable as these: the rules of fused losses
 * return them where gradients of gradients are needed. What is saved then is as large as the operands, several times.
 *
 * @param needs which of the inputs need a gradient
 */
export function composedGradients(
  loss: (inputs: readonly Tensor[]) => Tensor,
  inputs: readonly Tensor[],
  needs: readonly boolean[],
  gradient: Tensor,
): (Tensor | null)[] {
  const needed = inputs.filter((_, at) => needs[at]);
  const found = grad([loss(inputs)], needed, { gradOutputs: [gradient], createGraph: true });
  return inputs.map((_, at) => (needs[at] ? found.shift()! : null));
}
