import type { Primitive } from "../../backend/backend.ts";
import { lossCpu, lossGradientCpu } from "./loss.cpu.ts";
import { lossGradientMetal, lossMetal } from "./loss.metal.ts";
import { lossGradientReference, lossReference } from "./loss.reference.ts";
import type { LossName } from "./names.ts";

export interface LossAttributes {
  readonly name: LossName;
  /** Whether there is one result, the sum of all losses times the factor, in the dtype that computes. */
  readonly isSummed: boolean;
  readonly factor: number;
}

export interface LossGradientAttributes {
  readonly name: LossName;
  /** Of every gradient. */
  readonly factor: number;
  /** Whether the gradients of x and of the target are wanted: at least one of them. */
  readonly needs: readonly [boolean, boolean];
}

/** Inputs, all of x's shape and dtype: x, target and, of the weighted one, the weight and that of positive targets. */
export const lossPrimitive: Primitive<LossAttributes> = {
  name: "loss",
  implementations: { metal: lossMetal, cpu: lossCpu, reference: lossReference },
};

/** Inputs: the gradient of each loss, in the dtype that computes, then as above. Outputs: the gradients that are wanted. */
export const lossGradientPrimitive: Primitive<LossGradientAttributes> = {
  name: "lossGradient",
  implementations: { metal: lossGradientMetal, cpu: lossGradientCpu, reference: lossGradientReference },
};
