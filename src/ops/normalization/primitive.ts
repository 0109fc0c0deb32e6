/**
 * The primitives of normalizations: their operands by name, and what kernels are given. `problem.ts` has the formulas.
 */
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { enumeration } from "../../backend/enumeration.ts";
import { array, dtype, flag, real, whole } from "../../backend/fields.ts";
import { slicesFor } from "../../backend/metal/slices.ts";
import { struct } from "../../backend/metal/struct.ts";

/**
 * The operands of both passes. A call's attributes name those that it has, in their order. T is the dtype of x, S
 * float32 (float64 where T is).
 *
 * | name | shape | dtype |
 * |---|---|---|
 * | x, of the backward (1) | [..., N] | T |
 * | residual, gradOut, gradSum | [..., N] | T |
 * | weight, bias | [N] | T or float32, both the same |
 * | mean, scale | [...] | S, row-major |
 *
 * All but `mean` and `scale` may have any strides, negative and 0 too. There may be no rows; N is at least 1.
 */
export type InputName = "x" | "residual" | "weight" | "bias" | "mean" | "scale" | "gradOut" | "gradSum";

/**
 * The results, row-major: of the forward (`sum` with a residual, `mean` where centred), and those of the backward that
 * are needed.
 */
export type OutputName = "out" | "sum" | "mean" | "scale" | "gradX" | "gradWeight" | "gradBias";

export interface NormalizationAttributes {
  /** Names the call's inputs, in their order. */
  readonly inputs: readonly InputName[];
  /** Names the call's outputs, in their order. */
  readonly outputs: readonly OutputName[];
  /** Whether the mean is subtracted. */
  readonly isCentred: boolean;
  readonly eps: number;
}

/**
 * Operands that a call may lack. Kernels for metal are compiled for those that there are; with a `mean`, rows are
 * centred.
 */
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

/** Operands of the shape of x that kernels have room for: x and residual, or x, gradOut and gradSum. */
export const ROW_OPERANDS = 3;

export const normalizationParameters = struct("Normalization", "normalization/rows.h", {
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
  isCentred: flag,
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
