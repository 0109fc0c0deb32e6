import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { gt } from "../elementwise/comparison.ts";
import { defineBinary, renamed } from "../elementwise/define.ts";
import { operandDType, scalarTensor } from "../elementwise/operands.ts";
import type { BinaryOperation, FloatOf } from "../elementwise/types.ts";
import { where } from "../elementwise/where.ts";

/** Computes x if it is above 0, else x · slope. */
export const leaky: BinaryOperation = defineBinary("leaky", {
  isPublic: false,
  takes: "floats",
  saves: "operands",
  reference: { float: (x, slope) => (x > 0 ? x : x * slope) },
  gradient: (g, x, slope, needs) => [
    needs[0] ? where(gt(x, 0), g, mul(g, slope)) : null,
    needs[1] ? where(gt(x, 0), 0, mul(g, x)) : null,
  ],
});

const leakyOf = renamed("leakyRelu", leaky);

/** Options of {@link leakyRelu}. */
export interface LeakyReluOptions {
  /** Factor of elements that are not above 0. Default 0.01. */
  negativeSlope?: number | undefined;
}

/**
 * Computes x for each element above 0, and negativeSlope · x for the others. Integers become float32. The gradient at 0
 * is negativeSlope.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * leakyRelu(tensor([-2, 3]), 0.1); // float32 [-0.2, 3]
 */
export function leakyRelu<D extends DType>(
  x: Tensor<D>,
  ...options: Given<LeakyReluOptions, ["negativeSlope"]>
): Tensor<FloatOf<D>>;
export function leakyRelu(...values: unknown[]): Tensor {
  const { x, negativeSlope } = leakyReluParameters(values);
  const dtype = operandDType("leakyRelu", x.dtype, "floats");
  const computed = accumulationDType(dtype); // compute in float32, so that the slope keeps its precision
  return toDType(leakyOf(toDType(x, computed), scalarTensor(negativeSlope, computed)), dtype);
}
leakyRelu.method = "float" as const;
const leakyReluParameters = parameters("leakyRelu", { x: operand(aTensor), negativeSlope: optional(someNumber, 0.01) });
