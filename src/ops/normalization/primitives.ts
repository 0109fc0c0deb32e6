/** Normalizations as backends run them. `problem.ts` says what each computes. */
import type { Primitive } from "../../backend/backend.ts";
import { backwardCpu } from "./backward.cpu.ts";
import { backwardMetal } from "./backward.metal.ts";
import { backwardReference } from "./backward.reference.ts";
import { forwardCpu } from "./forward.cpu.ts";
import { forwardMetal } from "./forward.metal.ts";
import { forwardReference } from "./forward.reference.ts";
import type { NormalizationAttributes } from "./problem.ts";

/** x, and what there is of residual, weight and bias, to `out`, `scale`, and what there is of `sum` and `mean`. */
export const normalizationForward: Primitive<NormalizationAttributes> = {
  name: "normalizationForward",
  implementations: {
    metal: forwardMetal,
    cpu: forwardCpu,
    reference: forwardReference,
  },
};

/** The same, statistics and incoming gradients to the gradients that are needed. */
export const normalizationBackward: Primitive<NormalizationAttributes> = {
  name: "normalizationBackward",
  implementations: {
    metal: backwardMetal,
    cpu: backwardCpu,
    reference: backwardReference,
  },
};
