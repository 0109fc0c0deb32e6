import { lastElement } from "../../core/collections.ts";
import { tupleOf } from "../../core/tuples.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { GateActivation, WeightAttributes } from "../primitive.ts";

/** The attributes that all products of `count` rows with weights share. */
export interface RowsAttributes extends WeightAttributes {
  readonly count: number;
  /** Whether x is rounded to 8 bits, in parts of 32 values. */
  readonly isFast: boolean;
}

/**
 * A product of `count` rows with weights W: x Wᵀ + bias, or x W if `isTransposed`. The inputs are x, the inputs of the
 * weights, and the bias if there is one.
 */
export interface ProductAttributes extends RowsAttributes {
  readonly isTransposed: boolean;
  /** Whether a bias is added, after the product is rounded to its dtype. */
  readonly hasBias: boolean;
}

/** Names the inputs of a product. */
export function productInputs(inputs: readonly Tensor[], { hasBias }: ProductAttributes) {
  const end = hasBias ? inputs.length - 1 : inputs.length;
  return { x: inputs[0], weights: inputs.slice(1, end), bias: hasBias ? inputs[end] : undefined };
}

/**
 * A gated product, activation(x gateᵀ + bias) · (x upᵀ + bias). The inputs are x, the parts of the gate's weights, the
 * parts of up's weights, and the biases that exist.
 */
export interface SwigluAttributes extends RowsAttributes {
  readonly activation: GateActivation;
  readonly hasGateBias: boolean;
  readonly hasUpBias: boolean;
}

/** Names the inputs of a gated product. */
export function swigluInputs(inputs: readonly Tensor[], { hasGateBias, hasUpBias }: SwigluAttributes) {
  const biases = inputs.slice(inputs.length - Number(hasGateBias) - Number(hasUpBias));
  const weights = inputs.slice(1, inputs.length - biases.length);
  return {
    x: inputs[0],
    gate: weights.slice(0, weights.length / 2),
    up: weights.slice(weights.length / 2),
    gateBias: hasGateBias ? biases[0] : undefined,
    upBias: hasUpBias ? biases.at(-1) : undefined,
  };
}

/**
 * Products of `count` rows with several weights. The inputs are x, the inputs of all weights, and the biases that
 * exist.
 */
export interface ProjectionsAttributes {
  readonly count: number;
  readonly isFast: boolean;
  readonly weights: readonly WeightAttributes[];
  readonly hasBias: readonly boolean[];
}

/** Names the inputs of several products. */
export function projectionsInputs(inputs: readonly Tensor[], { weights, hasBias }: ProjectionsAttributes) {
  const left = inputs.slice(1);
  const parts = weights.map(({ format }) => left.splice(0, typeof format === "string" ? 1 : format.symmetric ? 2 : 3));
  return { x: inputs[0], weights: parts, biases: hasBias.map((isThere) => (isThere ? left.shift() : undefined)) };
}

/** The layout of rows in batches: strides between batches, between rows, and along a row, in elements. */
interface RowLayout {
  readonly batchRows: number;
  readonly xStrides: readonly [number, number, number];
}

/** Returns the layout of the rows along the last axis; undefined if it needs more than a batch and a row stride. */
export function layoutOfRows({ rank, shape, strides, isContiguous, size }: Tensor): RowLayout | undefined {
  const along = lastElement(strides);
  if (isContiguous && size > 0) return { batchRows: size / shape[rank - 1], xStrides: [0, shape[rank - 1], 1] };
  if (rank <= 2)
    return { batchRows: Math.max(1, rank === 2 ? shape[0] : 1), xStrides: [0, strides[rank - 2] ?? 0, along] };
  const lead = collapse(shape.slice(0, -1), [strides.slice(0, -1)]);
  const [leadStrides] = tupleOf(lead.strides, 1);
  if (lead.shape.length > 2) return undefined;
  const [batch, row] = leadStrides.length === 2 ? leadStrides : [0, leadStrides[0] ?? 0];
  return { batchRows: Math.max(1, lead.shape.at(-1) ?? 1), xStrides: [batch, row, along] };
}
