import type { Tensor } from "../../tensor/tensor.ts";
import type { WeightAttributes } from "../primitive.ts";

/**
 * A product of `count` rows with weights W: x Wᵀ + bias, or x W where `isTransposed`. Inputs are x, those of weights,
 * and the bias, if there is one.
 */
export interface ProductAttributes extends WeightAttributes {
  readonly count: number;
  readonly isTransposed: boolean;
  /** Whether x is brought to 8 bits, in parts of 32 values. */
  readonly isFast: boolean;
  /** Whether a bias is added, to the product as its dtype has it. */
  readonly hasBias: boolean;
}

/** The inputs of a product by what they are. */
export function productInputs(inputs: readonly Tensor[], { hasBias }: ProductAttributes) {
  const end = hasBias ? inputs.length - 1 : inputs.length;
  return { x: inputs[0]!, weights: inputs.slice(1, end), bias: hasBias ? inputs[end]! : undefined };
}

/** From row to row of x, and from column to column, in elements: x is contiguous, or has at most two axes. */
export function stridesOf({ rank, shape, strides }: Tensor): readonly [number, number] {
  const row = rank > 2 ? shape.at(-1)! : rank === 2 ? strides[0]! : 0;
  return [row, strides.at(-1)!];
}
