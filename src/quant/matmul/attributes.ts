import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { GateActivation, WeightAttributes } from "../primitive.ts";

/** What products of `count` rows with weights have in common. */
export interface RowsAttributes extends WeightAttributes {
  readonly count: number;
  /** Whether x is brought to 8 bits, in parts of 32 values. */
  readonly isFast: boolean;
}

/**
 * A product of `count` rows with weights W: x Wᵀ + bias, or x W where `isTransposed`. Inputs are x, those of weights,
 * and the bias, if there is one.
 */
export interface ProductAttributes extends RowsAttributes {
  readonly isTransposed: boolean;
  /** Whether a bias is added, to the product as its dtype has it. */
  readonly hasBias: boolean;
}

/** The inputs of a product by what they are. */
export function productInputs(inputs: readonly Tensor[], { hasBias }: ProductAttributes) {
  const end = hasBias ? inputs.length - 1 : inputs.length;
  return { x: inputs[0]!, weights: inputs.slice(1, end), bias: hasBias ? inputs[end]! : undefined };
}

/**
 * activation(x gateᵀ + bias) · (x upᵀ + bias). Inputs are x, those of the gate's weights, as many of up's, and the
 * biases that there are.
 */
export interface SwigluAttributes extends RowsAttributes {
  readonly activation: GateActivation;
  readonly hasGateBias: boolean;
  readonly hasUpBias: boolean;
}

/** The inputs of a gated product by what they are. */
export function swigluInputs(inputs: readonly Tensor[], { hasGateBias, hasUpBias }: SwigluAttributes) {
  const biases = inputs.slice(inputs.length - Number(hasGateBias) - Number(hasUpBias));
  const weights = inputs.slice(1, inputs.length - biases.length);
  return {
    ...{ x: inputs[0]!, gate: weights.slice(0, weights.length / 2), up: weights.slice(weights.length / 2) },
    ...{ gateBias: hasGateBias ? biases[0] : undefined, upBias: hasUpBias ? biases.at(-1) : undefined },
  };
}

/** Products of `count` rows with several weights. Inputs are x, those of all weights, and the biases that there are. */
export interface ProjectionsAttributes {
  readonly count: number;
  readonly isFast: boolean;
  readonly weights: readonly WeightAttributes[];
  readonly hasBias: readonly boolean[];
}

/** The inputs of several products by what they are. */
export function projectionsInputs(inputs: readonly Tensor[], { weights, hasBias }: ProjectionsAttributes) {
  const left = inputs.slice(1);
  const parts = weights.map(({ format }) => left.splice(0, typeof format === "string" ? 1 : format.symmetric ? 2 : 3));
  return { x: inputs[0]!, weights: parts, biases: hasBias.map((isThere) => (isThere ? left.shift() : undefined)) };
}

/** Where rows lie: in batches, with strides from batch to batch, from row to row, and along a row, in elements. */
interface RowLayout {
  readonly batchRows: number;
  readonly xStrides: readonly [number, number, number];
}

/** How the rows along the last axis lie in memory; undefined where it takes more than two axes to say it. */
export function layoutOfRows({ rank, shape, strides, isContiguous, size }: Tensor): RowLayout | undefined {
  const along = strides.at(-1)!;
  if (isContiguous && size > 0) return { batchRows: size / shape[rank - 1]!, xStrides: [0, shape[rank - 1]!, 1] };
  if (rank <= 2)
    return { batchRows: Math.max(1, rank === 2 ? shape[0]! : 1), xStrides: [0, strides[rank - 2] ?? 0, along] };
  const lead = collapse(shape.slice(0, -1), [strides.slice(0, -1)]);
  const [own] = lead.strides as [readonly number[]];
  if (lead.shape.length > 2) return undefined;
  const [batch, row] = own.length === 2 ? own : [0, own[0] ?? 0];
  return { batchRows: Math.max(1, lead.shape.at(-1) ?? 1), xStrides: [batch!, row!, along] };
}
