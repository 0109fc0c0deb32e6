/** The primitives of normalizations: names of operands, and parameters of kernels. `problem.ts` has the formulas. */
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { enumeration } from "../../backend/enumeration.ts";
import { array, dtype, flag, real, whole } from "../../backend/fields.ts";
import { slicesFor } from "../../backend/metal/slices.ts";
import { struct } from "../../backend/metal/struct.ts";

/**
 * Names of the operands of both passes. A call's attributes list its operands, in order. T is the dtype of x; S is
 * float32, or float64 if T is float64.
 *
 * | name | shape | dtype |
 * |---|---|---|
 * | x, or s of (1) in the backward | [..., N] | T |
 * | residual, gradOut, gradSum | [..., N] | T |
 * | weight, bias | [N] | T or float32, the same for both |
 * | mean, scale | [...] | S, row-major |
 *
 * All but `mean` and `scale` may have any strides, including negative ones and 0. The number of rows may be 0; N is at
 * least 1.
 */
export type InputName = "x" | "residual" | "weight" | "bias" | "mean" | "scale" | "gradOut" | "gradSum";

/**
 * Names of the row-major results: of the forward (`sum` with a residual, `mean` if centered), and the gradients of the
 * backward that are needed.
 */
export type OutputName = "out" | "sum" | "mean" | "scale" | "gradX" | "gradWeight" | "gradBias";

export interface NormalizationAttributes {
  /** Names of the call's inputs, in order. */
  readonly inputs: readonly InputName[];
  /** Names of the call's outputs, in order. */
  readonly outputs: readonly OutputName[];
  /** Whether the mean is subtracted. */
  readonly isCentered: boolean;
  readonly eps: number;
}

/** Optional operands. Metal kernels are compiled for each combination; with a `mean`, rows are centered. */
export const normalizationOptions = enumeration("NormalizationOption", [
  "mean",
  "residual",
  "weight",
  "bias",
  "gradSum",
  "gradX",
  "gradWeight",
  "gradBias",
]);

/** The most operands of x's shape that kernels support: x and residual, or x, gradOut and gradSum. */
export const ROW_OPERANDS = 3;

export const normalizationParameters = struct("Normalization", {
  rows: slicesFor(ROW_OPERANDS),
  weightStart: whole,
  weightStride: whole,
  biasStart: whole,
  biasStride: whole,
  chunk: whole,
  chunks: whole,
  eps: real,
});

const rowFields = {
  dtype,
  vectorDType: dtype,
  isCentered: flag,
  eps: real,
  rows: slices(ROW_OPERANDS),
  isPresent: array(flag, ROW_OPERANDS),
};
const weightFields = { hasWeight: flag, weightOffset: whole, weightStride: whole };
const biasFields = { hasBias: flag, biasOffset: whole, biasStride: whole };

export const normalizeCall = cpuCall(
  "normalize",
  { ...rowFields, ...weightFields, ...biasFields, hasSum: flag, hasMean: flag },
  ["x", "residual", "weight", "bias", "out", "sum", "mean", "scale"],
);

export const normalizeGradientCall = cpuCall(
  "normalizeGradient",
  { ...rowFields, ...weightFields, hasGradX: flag, hasGradWeight: flag, hasGradBias: flag },
  ["x", "gradOut", "gradSum", "weight", "mean", "scale", "gradX", "gradWeight", "gradBias"],
);
