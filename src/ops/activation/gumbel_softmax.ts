import { underName } from "../../backend/dispatch.ts";
import { aNumber, axis as axisKind, flag } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType, type FloatDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { zerosLike } from "../creation/full.ts";
import { add, neg, sub } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { div } from "../elementwise/division.ts";
import { log } from "../elementwise/logarithm.ts";
import { detach } from "../gradient/backward.ts";
import { scatter } from "../indexing/scatter.ts";
import { aGenerator, type GeneratorOptions } from "../random/distribution.ts";
import { rand } from "../random/rand.ts";
import { argmax } from "../reduction/extrema.ts";
import { floatOperand } from "../reduction/reduce.ts";
import { softmax } from "../softmax/softmax.ts";
import { axisOf } from "../view/slice.ts";

/** Options of {@link gumbelSoftmax}. */
export interface GumbelSoftmaxOptions extends GeneratorOptions {
  /** The temperature: lower values make samples closer to one-hot. Default 1. */
  tau?: number | undefined;
  /** Whether samples are one-hot, with the gradient of the soft samples. Default false. */
  hard?: boolean | undefined;
  /** The axis of the classes. Default −1. */
  dim?: number | undefined;
}

/**
 * Draws differentiable samples of classes: softmax((logits + g) / tau), with g drawn from the Gumbel distribution.
 *
 * Source: E. Jang et al., "Categorical Reparameterization with Gumbel-Softmax", 2016.
 *
 * @returns a tensor of logits' shape and dtype
 *
 * @example
 * gumbelSoftmax(tensor([[1, 2, 3]]), { tau: 0.5, hard: true }); // mostly [[0, 0, 1]]
 *
 * @throws {ShapeError} for an axis out of range. @throws {DTypeError} for integers and bools. @throws {ArgumentError}
 * for a temperature that is not above 0.
 */
export function gumbelSoftmax<D extends DType>(
  logits: Tensor<D>,
  ...options: Given<GumbelSoftmaxOptions, ["tau", "hard"]>
): Tensor<D>;
export function gumbelSoftmax(...values: unknown[]): Tensor {
  const { logits, tau, hard, dim, generator } = gumbelSoftmaxParameters(values);
  const input = floatOperand("gumbelSoftmax", logits, undefined);
  const axis = axisOf("gumbelSoftmax", logits, dim);
  return underName("gumbelSoftmax", () =>
    tidy(() => {
      const dtype: FloatDType = accumulationDType(logits.dtype);
      const noise = gumbels(rand(logits.shape, { dtype, generator }));
      const soft = softmax(div(add(toDType(input, dtype), noise), tau), { dim: axis });
      const sample = hard && logits.size > 0 ? add(oneOf(soft, axis), sub(soft, detach(soft))) : soft;
      return toDType(sample, logits.dtype);
    }),
  );
}
gumbelSoftmax.method = "same" as const;
const gumbelSoftmaxParameters = parameters("gumbelSoftmax", {
  logits: operand(aTensor),
  tau: optional(aNumber({ holds: (tau) => tau > 0, expected: "a number above 0" }), 1),
  hard: optional(flag, false),
  dim: named(axisKind, -1),
  generator: named(aGenerator),
});

/** Computes −ln(−ln u) of uniform numbers; 0 is replaced by a number below the smallest other one. */
const gumbels = (uniform: Tensor): Tensor => neg(log(neg(log(clamp(uniform, { min: LEAST })))));
const LEAST = 2 ** -54;

/** Returns 1 at the largest element along an axis, 0 elsewhere. */
function oneOf(x: Tensor, axis: number): Tensor {
  const detached = detach(x);
  return scatter(zerosLike(detached), axis, argmax(detached, { dim: axis, keepdim: true }), 1);
}
