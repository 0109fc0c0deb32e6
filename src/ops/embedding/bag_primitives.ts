import type { Primitive } from "../../backend/backend.ts";
import { bagCpu, bagFactorsCpu, bagGradientCpu } from "./bag.cpu.ts";
import { bagFactorsMetal, bagGradientMetal, bagMetal } from "./bag.metal.ts";
import { bagFactorsReference, bagGradientReference, bagReference } from "./bag.reference.ts";
import type { BagAttributes } from "./modes.ts";

/**
 * Inputs: indices and factors [total], or [bags, length] in rows; bounds [bags + 1]. What there is none of is the indices again. All three are
 * dense. A table [rows, width] and gradients [bags, width] have any strides.
 */

/**
 * Inputs: indices, bounds, factors, table. Outputs: [bags, width]; [bags], how many rows that are, in the dtype that computes; and for the
 * largest [bags, width], the number of the index whose row it is, −1 in an empty bag.
 */
export const bagPrimitive: Primitive<BagAttributes> = {
  name: "embeddingBag",
  implementations: { metal: bagMetal, cpu: bagCpu, reference: bagReference },
};

/** Inputs: indices, bounds, factors, gradients, counts and, for the largest, their numbers. Output: the gradient of the table. */
export const bagGradientPrimitive: Primitive<BagAttributes> = {
  name: "embeddingBagGradient",
  implementations: { metal: bagGradientMetal, cpu: bagGradientCpu, reference: bagGradientReference },
};

/** Inputs: indices, bounds, table, gradients. Output: the gradient of the factors, [total]. */
export const bagFactorsPrimitive: Primitive<BagAttributes> = {
  name: "embeddingBagFactors",
  implementations: { metal: bagFactorsMetal, cpu: bagFactorsCpu, reference: bagFactorsReference },
};
