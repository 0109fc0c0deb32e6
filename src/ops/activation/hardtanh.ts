import { ArgumentError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { clampAs } from "../elementwise/clamp.ts";
import { ge, le } from "../elementwise/comparison.ts";
import type { TernaryGradient } from "../elementwise/define.ts";
import { logicalOr } from "../elementwise/logic.ts";
import { operandDType, scalarTensor } from "../elementwise/operands.ts";
import { where } from "../elementwise/where.ts";

/** The bounds of {@link hardtanh}. */
export interface HardtanhOptions {
  /** Lower bound. Default −1. */
  minVal?: number | undefined;
  /** Upper bound. Default 1. */
  maxVal?: number | undefined;
}

/**
 * Computes min(max(x, minVal), maxVal) for each element. The gradient is 0 at the bounds and beyond, and passes for
 * NaN.
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * hardtanh(tensor([-2, 0.5, 2])); // float32 [-1, 0.5, 1]
 *
 * @throws {ArgumentError} if minVal is above maxVal.
 * @throws {DTypeError} for bools, and if an integer dtype can't represent a bound.
 */
export function hardtanh<D extends DType>(
  x: Tensor<D>,
  ...options: Given<HardtanhOptions, ["minVal", "maxVal"]>
): Tensor<D>;
export function hardtanh(...values: unknown[]): Tensor {
  const { x, minVal, maxVal } = hardtanhParameters(values);
  return hardtanhAs("hardtanh", x, { minVal, maxVal });
}
hardtanh.method = "same" as const;
const hardtanhParameters = parameters("hardtanh", {
  x: operand(aTensor),
  minVal: optional(someNumber, -1),
  maxVal: optional(someNumber, 1),
});

/** Computes {@link hardtanh} for another operation. Errors have that operation's name. */
export function hardtanhAs<D extends DType>(
  operation: string,
  x: Tensor<D>,
  { minVal, maxVal }: { readonly minVal: number; readonly maxVal: number },
): Tensor<D> {
  if (minVal > maxVal)
    throw new ArgumentError(
      operation,
      "invalidBounds",
      `expected minVal to be at most maxVal ${maxVal}, got ${minVal}`,
    );
  const dtype = operandDType(operation, x.dtype, "numbers");
  // throws if the dtype can't represent the bound
  for (const bound of [minVal, maxVal]) scalarTensor(bound, dtype, operation);
  return clampAs(operation, x, { min: minVal, max: maxVal }, insideOnly) as Tensor<D>;
}

/** Computes a gradient that is 0 at the bounds and beyond, and passes for NaN, as in PyTorch. */
const insideOnly: TernaryGradient = (g, [x, least, most]) => [
  where(logicalOr(le(x, least), ge(x, most)), 0, g),
  null,
  null,
];
