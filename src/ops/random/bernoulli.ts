import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { either, someNumber } from "../../core/kinds.ts";
import { named, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aDType, aTensor, shapeList } from "../../tensor/kinds.ts";
import { checkShape, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { checkFloat } from "../creation/create.ts";
import { full } from "../creation/full.ts";
import { expand } from "../view/expand.ts";
import { bernoulliCpu } from "./bernoulli.cpu.ts";
import { bernoulliMetal } from "./bernoulli.metal.ts";
import { bernoulliReference } from "./bernoulli.reference.ts";
import { aGenerator, type GeneratorOptions, nextStart } from "./distribution.ts";
import type { RandomStart } from "./primitive.ts";

/** Element i is 1 with probability p[i], else 0: it is 1 if its uniform random number is below p[i]. */
const bernoulliPrimitive = definePrimitive<RandomStart>({
  name: "bernoulli",
  family: "random",
  implementations: { metal: bernoulliMetal, cpu: bernoulliCpu, reference: bernoulliReference },
});

/** Options of {@link bernoulli}. */
export interface BernoulliOptions<D extends DType = DType> extends GeneratorOptions {
  /** Dtype of the result. Default: the dtype of the probabilities, or float32 for a number. */
  dtype?: D | undefined;
}

/**
 * Draws ones with a given probability, and zeros otherwise. It is not differentiable.
 *
 * @param p the probability of each element, a float tensor; or one number, with the shape of the result. 0 never gives
 * a one, 1 always does. In a tensor, elements below 0 count as 0, above 1 as 1, and NaN as 0
 * @param options `dtype` of the result: default that of the tensor, or float32 with a number; `generator`
 *
 * @example
 * bernoulli(tensor([0.1, 0.9]));
 * bernoulli(0.5, [2, 3], { dtype: "bool" });
 *
 * @throws {ArgumentError} for a number outside [0, 1].
 * @throws {DTypeError} for a tensor that is not floating-point.
 */
export function bernoulli<P extends DType, D extends DType = P>(p: Tensor<P>, options?: BernoulliOptions<D>): Tensor<D>;
export function bernoulli<D extends DType = "float32">(
  p: number,
  shape: Shape,
  options?: BernoulliOptions<D>,
): Tensor<D>;
export function bernoulli(...values: unknown[]): Tensor {
  const { p, shape, dtype, generator } = bernoulliParameters(values);
  if (Tensor.isTensor(p)) {
    if (shape !== undefined)
      throw new ArgumentError(
        "bernoulli",
        "shapeTwice",
        `shape cannot be combined with a tensor p, got p ${p.describe()}`,
      );
    return drawFrom(p, { dtype, generator });
  }
  if (!(p >= 0 && p <= 1))
    throw new ArgumentError("bernoulli", "invalidProbability", `expected a probability in [0, 1], got ${p}`);
  if (shape === undefined)
    throw new ShapeError("bernoulli", "invalidShape", "expected shape to be a list of sizes, got undefined");
  using limit = full([], p, { dtype: dtype === "float64" ? "float64" : "float32" });
  using limits = expand(limit, checkShape("bernoulli", shape));
  return drawFrom(limits, { dtype: dtype ?? "float32", generator });
}
const bernoulliParameters = parameters("bernoulli", {
  p: operand(either(aTensor, someNumber)),
  shape: optional(shapeList),
  dtype: named(aDType),
  generator: named(aGenerator),
});

function drawFrom(p: Tensor, options: BernoulliOptions): Tensor {
  const dtype = options.dtype ?? p.dtype;
  checkFloat("bernoulli", p.dtype);
  return execute(bernoulliPrimitive, [p], p.shape, dtype, nextStart(options));
}
