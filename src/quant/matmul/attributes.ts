import type { WeightAttributes } from "../primitive.ts";

/** A product of `count` rows with weights W: x Wᵀ, or x W where `isTransposed`. Inputs are x, and those of weights. */
export interface ProductAttributes extends WeightAttributes {
  readonly count: number;
  readonly isTransposed: boolean;
}
