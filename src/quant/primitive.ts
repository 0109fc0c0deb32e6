/** Primitives on quantized weights. Operands are dense: packed […, words or bytes], scales, biases […, groups]. */

import { cpuCall } from "../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../backend/enumeration.ts";
import { array, cpuMembers, dtype, type Field, flag, oneOf, type ValuesOf, whole } from "../backend/fields.ts";
import { struct } from "../backend/metal/struct.ts";
import { lastElement } from "../core/collections.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type AffineFormat, ggmlFormats, type QuantizedFormat } from "./formats.ts";
import type { QuantizedTensor } from "./quantized_tensor.ts";

/** How values are packed: a block format, or groups with or without biases. */
export const packings = enumeration("Packing", [...ggmlFormats, "affine", "symmetric"]);
type Packing = NameOf<typeof packings>;

export const packingOf = (format: QuantizedFormat): Packing =>
  typeof format === "string" ? format : format.symmetric ? "symmetric" : "affine";

/** Rows of quantized values. */
export interface WeightAttributes {
  readonly format: QuantizedFormat;
  readonly rows: number;
  /** Values per row. */
  readonly columns: number;
}

export const attributesOf = ({ format, shape, size }: QuantizedTensor): WeightAttributes => {
  const columns = lastElement(shape);
  return { format, rows: columns === 0 ? 0 : size / columns, columns };
};

/** The inputs of a primitive that represent weights: packed values, then scales and biases if they exist. */
export const weightInputs = ({ parts: { packed, scales, biases } }: QuantizedTensor): Tensor[] =>
  [packed, scales, biases].filter((part) => part !== undefined);

/** The first fields of every call on weights; `offsets` belong to packed values, scales and biases. */
const weightFields = {
  packing: oneOf(packings),
  scaleDtype: dtype,
  bits: whole,
  group: whole,
  rows: whole,
  columns: whole,
  offsets: array(whole, 3),
};

const affineOf = (format: QuantizedFormat): Pick<AffineFormat, "bits" | "groupSize"> | undefined =>
  typeof format === "string" ? undefined : format;

/** Returns the values of {@link weightFields}. */
export function weightValues({ format, rows, columns }: WeightAttributes, weights: readonly Tensor[]) {
  const [packed, scales, biases] = weights as [Tensor, Tensor?, Tensor?];
  return {
    packing: packingOf(format),
    scaleDtype: scales?.dtype ?? "float32",
    bits: affineOf(format)?.bits ?? 0,
    group: affineOf(format)?.groupSize ?? 0,
    rows,
    columns,
    offsets: [packed.offset, scales?.offset ?? 0, biases?.offset ?? 0],
  } as const;
}

/** The operands by which a call receives quantized weights. */
export const weightOperands = ([packed, scales, biases]: readonly Tensor[]): (Tensor | undefined)[] => [
  packed,
  scales,
  biases,
];

export const dequantizeCall = cpuCall("dequantize", { ...weightFields, dtype }, [
  "packed",
  "scales",
  "biases",
  "output",
]);

/** The activations that can follow the product with a gate's weights. */
export const gateActivations = enumeration("GateActivation", ["silu", "gelu", "geluTanh"]);
/** The activation of a gate: silu, gelu, or the tanh approximation of gelu. */
export type GateActivation = NameOf<typeof gateActivations>;

/**
 * The layout of `count` rows of x: batches of `batchRows`, with strides between batches, between rows and along a row.
 */
const rowFields = { count: whole, batchRows: whole, xOffset: whole, xStrides: array(whole, 3) };

/**
 * A product with weights: x Wᵀ, or x W if `isTransposed`, plus an optional bias; x is rounded to 8 bits if `isFast`.
 */
export const quantizedMatmulCall = cpuCall(
  "quantizedMatmul",
  { ...weightFields, dtype, ...rowFields, isFast: flag, isTransposed: flag, hasBias: flag, biasOffset: whole },
  ["packed", "scales", "biases", "x", "bias", "output"],
);

/** activation(x gateᵀ + bias) · (x upᵀ + bias). Both weights have one format; the weight fields are the gate's. */
export const quantizedSwigluCall = cpuCall(
  "quantizedSwiglu",
  {
    ...weightFields,
    dtype,
    ...rowFields,
    isFast: flag,
    activation: oneOf(gateActivations),
    upOffsets: array(whole, 3),
    hasGateBias: flag,
    hasUpBias: flag,
    biasOffsets: array(whole, 2),
  },
  ["gatePacked", "gateScales", "gateBiases", "upPacked", "upScales", "upBiases", "x", "gateBias", "upBias", "output"],
);

const weightMembers = cpuMembers(weightFields);

/** The fields of weights, nested in one field, for calls on several weights. */
const weights: Field<ValuesOf<typeof weightFields>> = {
  cpu: {
    type: "WeightHead",
    ...weightMembers,
    write(block, at, values, ordinals) {
      for (const [name, { field, offset }] of Object.entries(weightMembers.members))
        field.write(block, at + offset, values[name as keyof typeof values] as never, ordinals);
    },
  },
};

/** Three products x Wᵀ + bias with the same x, and weights of any formats. */
export const quantizedProjectionsCall = cpuCall(
  "quantizedProjections",
  {
    dtype,
    ...rowFields,
    isFast: flag,
    first: weights,
    second: weights,
    third: weights,
    hasBias: array(flag, 3),
    biasOffsets: array(whole, 3),
  },
  [
    "firstPacked",
    "firstScales",
    "firstBiases",
    "secondPacked",
    "secondScales",
    "secondBiases",
    "thirdPacked",
    "thirdScales",
    "thirdBiases",
    "x",
    "firstBias",
    "secondBias",
    "thirdBias",
    "firstOutput",
    "secondOutput",
    "thirdOutput",
  ],
);

/** The kernel struct of rows of quantized weights. */
export const quantWeights = struct("QuantWeights", { rows: whole, columns: whole, rowBytes: whole });

/** The kernel struct of a product with weights. Each SIMD-group processes `ownRows` rows of the weights. */
export const quantProduct = struct("QuantProduct", {
  weights: quantWeights,
  count: whole,
  batchRows: whole,
  xStrides: array(whole, 3),
  xStart: whole,
  ownRows: whole,
});
