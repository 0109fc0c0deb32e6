import type { Tensor } from "../../tensor/tensor.ts";
import { grad } from "./backward.ts";

/**
 * Computes gradients through a composition of other operations, so that they are differentiable. Fused operations use
 * this for higher-order gradients. Saved tensors need several times the memory of the operands.
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
