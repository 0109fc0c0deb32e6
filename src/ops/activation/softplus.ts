import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { gt } from "../elementwise/comparison.ts";
import { defineTernary, type Ternary } from "../elementwise/define.ts";
import { operandDType, scalarTensor } from "../elementwise/operands.ts";
import type { FloatOf } from "../elementwise/types.ts";
import { where } from "../elementwise/where.ts";
import { sigmoid } from "./sigmoid.ts";

const softplusOf: Ternary = defineTernary("softplus", {
  reference: {
    float: (x, beta, threshold) => (x * beta > threshold ? x : Math.log1p(Math.exp(x * beta)) / beta),
  },
  gradient(g, [x, beta, threshold]) {
    const scaled = mul(x, beta);
    return [where(gt(scaled, threshold), g, mul(g, sigmoid(scaled))), null, null];
  },
});

/** Options of {@link softplus}: log(1 + e^(beta·x)) / beta. */
export interface SoftplusOptions {
  /** Sharpness of the bend. Default 1. */
  beta?: number | undefined;
  /** If beta·x is above this, the result is x itself. Default 20. */
  threshold?: number | undefined;
}

/**
 * Computes ln(1 + exp(beta·x))/beta, a smooth relu, for each element. Integers become float32.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * softplus(tensor([-1, 0, 1])); // float32 [0.31326, 0.69315, 1.3133]
 */
export function softplus<D extends DType>(
  x: Tensor<D>,
  ...options: Given<SoftplusOptions, ["beta", "threshold"]>
): Tensor<FloatOf<D>>;
export function softplus(...values: unknown[]): Tensor {
  const { x, beta, threshold } = softplusParameters(values);
  const dtype = operandDType("softplus", x.dtype, "floats");
  // Compute in at least float32, so that beta keeps its precision.
  const computed = accumulationDType(dtype);
  const bend = [scalarTensor(beta, computed), scalarTensor(threshold, computed)] as const;
  return toDType(softplusOf([toDType(x, computed), ...bend]), dtype);
}
softplus.method = "float" as const;
const softplusParameters = parameters("softplus", {
  x: operand(aTensor),
  beta: optional(someNumber, 1),
  threshold: optional(someNumber, 20),
});
