/**
 * The primitives `batchNorm` and `batchNormGradient`. x is [batch, channels, inner], contiguous and not empty. For each
 * channel, with M = batch · inner elements:
 *
 *     mean     = Σ x / M                                 if not given
 *     variance = Σ (x − mean)² / M                       if not given
 *     scale    = 1 / √(variance + eps)
 *     n        = (x − mean) · scale
 *     out      = n · weight + bias                       weight and bias are optional
 *
 * and for statistics computed from x, given the gradient g of `out`:
 *
 *     gradBias = Σ g,   gradWeight = Σ g · n
 *     gradX    = scale · weight · (g − gradBias / M − n · gradWeight / M)
 *
 * Vectors have one number for each channel, in float32 (float64 if x is float64). Sums use at least float32 and run in
 * the same order every time.
 */
import { cpuCall } from "../../backend/cpu/call.ts";
import { enumeration } from "../../backend/enumeration.ts";
import { array, dtype, flag, real, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Named, namedTensors } from "./problem.ts";

/** Means and variances are results, or inputs if they are given. */
export type BatchNormName = "x" | "weight" | "bias" | "mean" | "variance" | "out";
export type BatchNormGradientName =
  | ("x" | "gradOut" | "weight" | "mean" | "variance")
  | ("gradX" | "gradWeight" | "gradBias");

/** The operands of a call, with those that every call has. */
export type BatchNormOperands = Named<BatchNormName> & Readonly<Record<"x" | "mean" | "variance" | "out", Tensor>>;
export type BatchNormGradientOperands = Named<BatchNormGradientName> &
  Readonly<Record<"x" | "gradOut" | "mean" | "variance", Tensor>>;

export interface BatchNormAttributes<Name extends string> {
  /** Names of the call's inputs, in order. */
  readonly inputs: readonly Name[];
  /** Names of the call's outputs, in order. */
  readonly outputs: readonly Name[];
  readonly eps: number;
}

/** Returns the operands of a forward call by name. */
export const operandsOf = (
  { inputs, outputs }: BatchNormAttributes<BatchNormName>,
  given: readonly Tensor[],
  results: readonly Tensor[],
): BatchNormOperands => namedTensors<BatchNormOperands>([...inputs, ...outputs], [...given, ...results]);

/** Optional operands, and whether statistics are given. Metal kernels are compiled for each combination. */
export const batchNormOptions = enumeration("BatchNormOption", [
  ...(["weight", "bias", "given", "gradX", "gradWeight", "gradBias"] as const),
]);

const sizes = { batch: whole, channels: whole, inner: whole, eps: real };

export const batchNormParameters = struct("BatchNorm", sizes);

export const batchNormCall = cpuCall(
  "batchNorm",
  { dtype, ...sizes, hasWeight: flag, hasBias: flag, isGiven: flag, offsets: array(whole, 6) },
  ["x", "weight", "bias", "mean", "variance", "out"],
);

const gradientFlags = { hasWeight: flag, hasGradX: flag, hasGradWeight: flag, hasGradBias: flag };

export const batchNormGradientCall = cpuCall(
  "batchNormGradient",
  { dtype, ...sizes, ...gradientFlags, offsets: array(whole, 8) },
  ["x", "gradOut", "weight", "mean", "variance", "gradX", "gradWeight", "gradBias"],
);
