import type { Tensor } from "../../tensor/tensor.ts";
import type { WeightAttributes } from "../primitive.ts";

/** A product of `count` rows with weights W: x Wᵀ, or x W where `isTransposed`. Inputs are x, and those of weights. */
export interface ProductAttributes extends WeightAttributes {
  readonly count: number;
  readonly isTransposed: boolean;
  /** Whether x is brought to 8 bits, in parts of 32 values. */
  readonly isFast: boolean;
}

/** From row to row of x, and from column to column, in elements: x is contiguous, or has at most two axes. */
export function stridesOf({ rank, shape, strides }: Tensor): readonly [number, number] {
  const row = rank > 2 ? shape.at(-1)! : rank === 2 ? strides[0]! : 0;
  return [row, strides.at(-1)!];
}
