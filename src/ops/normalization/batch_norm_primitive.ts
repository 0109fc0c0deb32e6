/**
 * The primitives `batchNorm` and `batchNormGradient`: x is [batch, channels, inner], without gaps and not empty. For
 * each channel, with M = batch · inner elements:
 *
 *     mean     = Σ x / M                                 where they are not given
 *     variance = Σ (x − mean)² / M                       where they are not given
 *     scale    = 1 / √(variance + eps)
 *     n        = (x − mean) · scale
 *     out      = n · weight + bias                       each where there is one
 *
 * and of statistics that are x's own, from the gradient g of `out`:
 *
 *     gradBias = Σ g,   gradWeight = Σ g · n
 *     gradX    = scale · weight · (g − gradBias / M − n · gradWeight / M)
 *
 * Vectors have a number for each channel, of float32 (of float64 where x is). Sums are at least in float32, in an order
 * that is the same on every run.
 */
import { cpuCall } from "../../backend/cpu/call.ts";
import { enumeration } from "../../backend/enumeration.ts";
import { array, dtype, flag, real, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";

/** Means and variances are results, or inputs where they are given. */
export type BatchNormName = "x" | "weight" | "bias" | "mean" | "variance" | "out";
export type BatchNormGradientName =
  | ("x" | "gradOut" | "weight" | "mean" | "variance")
  | ("gradX" | "gradWeight" | "gradBias");

export interface BatchNormAttributes<Name extends string> {
  /** Names the call's inputs, in their order. */
  readonly inputs: readonly Name[];
  /** Names the call's outputs, in their order. */
  readonly outputs: readonly Name[];
  readonly eps: number;
}

/** What a call may lack, and whether statistics are given: kernels for metal are compiled for it. */
export const batchNormOptions = enumeration("BatchNormOption", [
  ...(["weight", "bias", "given", "gradX", "gradWeight", "gradBias"] as const),
]);

const sizes = { batch: whole, channels: whole, inner: whole, eps: real };

export const batchNormParameters = struct("BatchNorm", "normalization/batch_norm.metal", sizes);

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
