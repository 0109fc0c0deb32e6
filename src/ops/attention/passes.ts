/** Attention's primitives. `problem.ts` defines what each computes. */
import { definePrimitive } from "../../backend/primitive.ts";
import { backwardCpu } from "./backward.cpu.ts";
import { backwardMetal } from "./backward.metal.ts";
import { backwardReference } from "./backward.reference.ts";
import { dropoutMaskCpu } from "./dropout_mask.cpu.ts";
import { dropoutMaskMetal } from "./dropout_mask.metal.ts";
import { dropoutMaskReference } from "./dropout_mask.reference.ts";
import { forwardCpu } from "./forward.cpu.ts";
import { forwardMetal } from "./forward.metal.ts";
import { forwardReference } from "./forward.reference.ts";
import type { AttentionAttributes, DropoutMaskAttributes } from "./problem.ts";

/** Maps q, k, v and options to `out`; also to `logSumExp` and `logSumExpLow` if they are among the outputs. */
export const attentionForward = definePrimitive<AttentionAttributes>({
  name: "attentionForward",
  family: "attention",
  implementations: { metal: forwardMetal, cpu: forwardCpu, reference: forwardReference },
});

/**
 * Maps the inputs and results of the forward pass, `gradOut` and optionally `gradLogSumExp` to the gradients that are
 * needed.
 */
export const attentionBackward = definePrimitive<AttentionAttributes>({
  name: "attentionBackward",
  family: "attention",
  implementations: { metal: backwardMetal, cpu: backwardCpu, reference: backwardReference },
});

/**
 * Computes bool [B, H, M, N], without inputs: the decisions `kept` of a call's dropout, regardless of masking. Pairs of
 * different packed sequences are false.
 */
export const attentionDropoutMask = definePrimitive<DropoutMaskAttributes>({
  name: "attentionDropoutMask",
  family: "attention",
  implementations: { metal: dropoutMaskMetal, cpu: dropoutMaskCpu, reference: dropoutMaskReference },
});
