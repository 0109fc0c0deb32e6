import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { ArgumentError } from "../../core/errors.ts";
import { aNumber, flag } from "../../core/kinds.ts";
import { type Given, type Kind, named, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkFloat } from "../creation/create.ts";
import { aGenerator, type GeneratorOptions, nextStart } from "../random/distribution.ts";
import { dropoutCpu } from "./dropout.cpu.ts";
import { dropoutMetal } from "./dropout.metal.ts";
import { dropoutReference } from "./dropout.reference.ts";
import type { DropoutAttributes } from "./primitive.ts";

/** Dropout is linear in x, so its gradient is the same operation on the result's gradient. */
const primitive = definePrimitive<DropoutAttributes>({
  name: "dropout",
  family: "activation",
  implementations: { metal: dropoutMetal, cpu: dropoutCpu, reference: dropoutReference },
});

/** @internal A dropout probability. */
export const aProbability: Kind<number> = {
  ...aNumber({ holds: (p) => p >= 0 && p <= 1, expected: "a probability in [0, 1]" }),
  error: [ArgumentError, "invalidProbability"],
};

/** Options of {@link dropout}. */
export interface DropoutOptions extends GeneratorOptions {
  /** The probability of setting an element to 0, in [0, 1]. Default 0.5. */
  p?: number | undefined;
  /** Whether to drop elements; if false, returns x itself. Default true. */
  training?: boolean | undefined;
}

/**
 * Sets elements to 0 with probability p and scales the others by 1/(1 − p), so that the expectation is unchanged. With
 * p = 0, or if `training` is false, it returns x itself and does not advance the generator.
 *
 * The mask depends only on the generator and each element's index, not on backend, strides or threads. The mask is not
 * saved; the gradient recomputes it.
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * dropout(x, 0.1);
 *
 * @throws {ArgumentError} for a p outside [0, 1]. @throws {DTypeError} if x is not a float.
 */
export function dropout<D extends DType>(x: Tensor<D>, ...options: Given<DropoutOptions, ["p", "training"]>): Tensor<D>;
export function dropout(...values: unknown[]): Tensor {
  const { x, p, training, generator } = dropoutParameters(values);
  checkFloat("dropout", x.dtype);
  if (!training || p === 0) return x;
  return dropped(x, { ...nextStart({ generator }), ...shareOf(p) });
}
dropout.method = "same" as const;
const dropoutParameters = parameters("dropout", {
  x: operand(aTensor),
  p: optional(aProbability, 0.5),
  training: optional(flag, true),
  generator: named(aGenerator),
});

const WORDS = 2 ** 32;

/** Rounds p to a multiple of 2⁻³². With p = 1, the scale is 0. */
const shareOf = (p: number): Pick<DropoutAttributes, "lastDropped" | "scale"> =>
  p === 1
    ? { lastDropped: WORDS - 1, scale: 0 }
    : { lastDropped: Math.min(Math.max(Math.round(p * WORDS), 1), WORDS - 1) - 1, scale: 1 / (1 - p) };

function dropped<D extends DType>(x: Tensor<D>, attributes: DropoutAttributes): Tensor<D> {
  const output = execute(primitive, [x], x.shape, x.dtype, attributes);
  record("dropout", [x], [output], [], ([gradient]) => [dropped(gradient, attributes)]);
  return output;
}
