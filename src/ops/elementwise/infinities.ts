/** Tests for infinities of one sign. */
import { underName } from "../../backend/dispatch.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkReal } from "../creation/create.ts";
import { eq } from "./comparison.ts";
import { isinf } from "./predicates.ts";

/**
 * Tests whether each element is ∞; false for integers.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * isposinf(tensor([1, Infinity, -Infinity])); // bool [false, true, false]
 */
export function isposinf(x: Tensor): Tensor<"bool">;
export function isposinf(...values: unknown[]): Tensor<"bool"> {
  return isInfinity("isposinf", isposinfParameters(values).x, Number.POSITIVE_INFINITY);
}
isposinf.method = "bool" as const;
const isposinfParameters = parameters("isposinf", { x: operand(aTensor) });

/**
 * Tests whether each element is −∞; false for integers.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * isneginf(tensor([1, Infinity, -Infinity])); // bool [false, false, true]
 */
export function isneginf(x: Tensor): Tensor<"bool">;
export function isneginf(...values: unknown[]): Tensor<"bool"> {
  return isInfinity("isneginf", isneginfParameters(values).x, Number.NEGATIVE_INFINITY);
}
isneginf.method = "bool" as const;
const isneginfParameters = parameters("isneginf", { x: operand(aTensor) });

function isInfinity(operation: string, x: Tensor, infinity: number): Tensor<"bool"> {
  checkReal(operation, x.dtype);
  return underName(operation, () => (isFloat(x.dtype) ? eq(x, infinity) : isinf(x)));
}
