import { ArgumentError } from "../../core/errors.ts";
import { parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { FloatOf } from "../elementwise/types.ts";
import { type EluArguments, eluParameters, scaledElu } from "./elu.ts";

/**
 * Computes x for each element above 0, and alpha·(exp(x/alpha) − 1) for the others. Its derivative is continuous.
 * Integers become float32.
 *
 * Source: J. Barron, "Continuously differentiable exponential linear units", 2017.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * celu(tensor([-1, 0, 2]), 2); // float32 [-0.786939, 0, 2]
 *
 * @throws {ArgumentError} if alpha is 0.
 */
export function celu<D extends DType>(x: Tensor<D>, ...options: EluArguments): Tensor<FloatOf<D>>;
export function celu(...values: unknown[]): Tensor {
  const { x, alpha } = celuParameters(values);
  if (alpha === 0) throw new ArgumentError("celu", "invalidAlpha", "expected an alpha other than 0, got 0");
  return scaledElu("celu", x, { alpha, rate: 1 / alpha });
}
celu.method = "float" as const;
const celuParameters = parameters("celu", eluParameters);
