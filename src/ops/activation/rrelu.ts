import { underName } from "../../backend/dispatch.ts";
import { ArgumentError } from "../../core/errors.ts";
import { aNumber, flag } from "../../core/kinds.ts";
import { finite } from "../../core/options.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType, FloatDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { le } from "../elementwise/comparison.ts";
import { where } from "../elementwise/where.ts";
import { aGenerator, type GeneratorOptions } from "../random/distribution.ts";
import { uniform } from "../random/rand.ts";
import { floatOperand } from "../reduction/reduce.ts";
import { leakyRelu } from "./leaky_relu.ts";

/** Options of {@link rrelu}. */
export interface RReluOptions extends GeneratorOptions {
  /** The smallest slope. Default 1/8. */
  lower?: number | undefined;
  /** The largest slope. Default 1/3. */
  upper?: number | undefined;
  /** Whether to draw slopes; if false, the slope is the mean of both bounds. Default false. */
  training?: boolean | undefined;
}

/**
 * Computes randomized leaky ReLU: x for each element above 0, and slope · x for the others. With `training`, a slope is
 * drawn for each element.
 *
 * Source: B. Xu et al., "Empirical Evaluation of Rectified Activations in Convolutional Network", 2015.
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * rrelu(tensor([-2, 3]), 0.25, 0.75); // float32 [-1, 3]
 *
 * @throws {ArgumentError} if lower is above upper. @throws {DTypeError} for integers and bools.
 */
export function rrelu<D extends DType>(
  x: Tensor<D>,
  ...options: Given<RReluOptions, ["lower", "upper", "training"]>
): Tensor<D>;
export function rrelu(...values: unknown[]): Tensor {
  const { x, lower, upper, training, generator } = rreluParameters(values);
  const input = floatOperand("rrelu", x, undefined);
  if (lower > upper)
    throw new ArgumentError("rrelu", "invalidRange", `expected lower ≤ upper, got ${lower} and ${upper}`);
  return underName("rrelu", () => {
    if (!training) return leakyRelu(input, (lower + upper) / 2);
    return tidy(() => {
      const slopes = uniform(lower, upper, x.shape, { dtype: x.dtype as FloatDType, generator });
      return where(le(input, 0), mul(input, slopes), input);
    });
  });
}
rrelu.method = "same" as const;
const rreluParameters = parameters("rrelu", {
  x: operand(aTensor),
  lower: optional(aNumber(finite), 1 / 8),
  upper: optional(aNumber(finite), 1 / 3),
  training: optional(flag, false),
  generator: named(aGenerator),
});
