import type { Primitive } from "../../backend/backend.ts";
import { crossEntropyCpu, crossEntropyGradientCpu } from "./cross_entropy.cpu.ts";
import { crossEntropyGradientMetal, crossEntropyMetal } from "./cross_entropy.metal.ts";
import { crossEntropyGradientReference, crossEntropyReference } from "./cross_entropy.reference.ts";

export interface CrossEntropyAttributes {
  /** The axis of the classes. */
  readonly axis: number;
  readonly ignoreIndex: number;
  readonly labelSmoothing: number;
}

/**
 * Inputs: logits, targets and, where classes have factors, these and their sum, dense, in the dtype that computes. Outputs in that dtype, one
 * number for each target: the loss, and the factor of the target's class (0 where it is ignored); then log Σ exp(logits) as two of them: the
 * largest logits, and log Σ exp(logits − largest).
 */
export const crossEntropyPrimitive: Primitive<CrossEntropyAttributes> = {
  name: "crossEntropy",
  implementations: { metal: crossEntropyMetal, cpu: crossEntropyCpu, reference: crossEntropyReference },
};

/**
 * Inputs: logits, targets, log Σ exp(logits), the gradient of each loss, and the factors and their sum as above. Output: the gradient of the
 * logits.
 */
export const crossEntropyGradientPrimitive: Primitive<CrossEntropyAttributes> = {
  name: "crossEntropyGradient",
  implementations: {
    metal: crossEntropyGradientMetal,
    cpu: crossEntropyGradientCpu,
    reference: crossEntropyGradientReference,
  },
};
