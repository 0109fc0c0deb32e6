import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { copyInto } from "../../ops/copy/copy.ts";
import { checkTarget, fill_ } from "../../ops/copy/inplace.ts";
import { checkFloat } from "../../ops/creation/create.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { add, mul } from "../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../ops/elementwise/clamp.ts";
import { erf, erfinv } from "../../ops/elementwise/erf.ts";
import { randomRows } from "../../ops/inplace/random.ts";
import { aGenerator, type GeneratorOptions } from "../../ops/random/distribution.ts";
import { uniform } from "../../ops/random/rand.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import { aScalar, aTensor } from "../../tensor/kinds.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";

/** @internal A finite number. */
export const finite = aNumber({ holds: Number.isFinite, expected: "a finite number" });
/** @internal A standard deviation. */
export const deviation = aNumber({
  holds: (std) => std >= 0 && std < Infinity,
  expected: "a finite number of at least 0",
});
const x = operand(aTensor);
const generated = { generator: named(aGenerator) } as const;

/**
 * Fills a tensor with uniform numbers in [a, b), by default [0, 1). Returns the tensor.
 *
 * @example
 * nn.init.uniform_(layer.weight, -0.1, 0.1);
 *
 * @throws {DTypeError} for integers and bools. @throws {ArgumentError} unless a ≤ b, and both are finite.
 */
export function uniform_<T extends Tensor>(
  tensor: T,
  ...options: Given<GeneratorOptions & { a?: number | undefined; b?: number | undefined }, ["a", "b"]>
): T;
export function uniform_(...values: unknown[]): Tensor {
  const { x, a, b, generator } = uniformParameters(values);
  return noGrad(() => randomRows.uniform_(x, a, b, { generator }));
}
const uniformParameters = parameters("init.uniform_", {
  x,
  a: optional(finite, 0),
  b: optional(finite, 1),
  ...generated,
});

/**
 * Fills a tensor with normal numbers, by default of mean 0 and standard deviation 1. Returns the tensor.
 *
 * @example
 * nn.init.normal_(layer.weight, 0, 0.02);
 *
 * @throws {DTypeError} for integers and bools. @throws {ArgumentError} unless both are finite and std ≥ 0.
 */
export function normal_<T extends Tensor>(
  tensor: T,
  ...options: Given<GeneratorOptions & { mean?: number | undefined; std?: number | undefined }, ["mean", "std"]>
): T;
export function normal_(...values: unknown[]): Tensor {
  const { x, mean, std, generator } = normalParameters(values);
  return noGrad(() => randomRows.normal_(x, mean, std, { generator }));
}
const normalParameters = parameters("init.normal_", {
  x,
  mean: optional(finite, 0),
  std: optional(deviation, 1),
  ...generated,
});

/** Options of {@link truncNormal_}. */
export interface TruncNormalOptions extends GeneratorOptions {
  /** The mean of the normal distribution before it is cut. Default 0. */
  mean?: number | undefined;
  /** The standard deviation of this normal distribution. Default 1. */
  std?: number | undefined;
  /** The smallest value. Default −2. */
  a?: number | undefined;
  /** The largest value. Default 2. */
  b?: number | undefined;
}

/**
 * Fills a tensor with normal numbers restricted to [a, b]. Returns the tensor.
 *
 * As PyTorch's `trunc_normal_`, it draws uniform numbers between the cumulative probabilities of the bounds and applies
 * the inverse normal distribution function. It computes in float32, or in float64 for float64.
 *
 * @example
 * nn.init.truncNormal_(layer.weight, { std: 0.02 });
 *
 * @throws {DTypeError} for integers and bools. @throws {ArgumentError} unless a < b, and std > 0.
 */
export function truncNormal_<T extends Tensor>(
  tensor: T,
  ...options: Given<TruncNormalOptions, ["mean", "std", "a", "b"]>
): T;
export function truncNormal_(...values: unknown[]): Tensor {
  const { x, mean, std, a, b, generator } = truncNormalParameters(values);
  checkFloat("init.truncNormal_", x.dtype);
  if (!(a < b)) throw new ArgumentError("init.truncNormal_", "invalidRange", `expected a < b, got ${a} and ${b}`);
  // 2 Φ((bound − mean) / std) − 1 = erf((bound − mean) / (std √2)).
  const [low, high] = tupleOf(
    [a, b].map((bound) => Number(erf(tensor((bound - mean) / (std * Math.SQRT2), { dtype: "float64" })).item())),
    2,
  );
  const dtype = accumulationDType(x.dtype);
  return written("init.truncNormal_", x, () => {
    const standard = erfinv(uniform(low, high, x.shape, { dtype, generator }));
    return clamp(add(mul(standard, std * Math.SQRT2), mean), a, b);
  });
}
const truncNormalParameters = parameters("init.truncNormal_", {
  x,
  mean: optional(finite, 0),
  std: optional(aNumber({ holds: (std) => std > 0 && std < Infinity, expected: "a finite number above 0" }), 1),
  a: optional(finite, -2),
  b: optional(finite, 2),
  ...generated,
});

/** @internal Copies a computed tensor into x, without recording it. */
export function written(operation: string, target: Tensor, compute: () => Tensor): Tensor {
  return noGrad(() => {
    checkTarget(operation, target, []);
    tidy(() => copyInto(target, compute()));
    return target;
  });
}

const filledWith = (target: Tensor, value: Scalar): Tensor => noGrad(() => fill_(target, value));

/** Fills a tensor with a number. Returns the tensor. @example nn.init.constant_(layer.bias, 0.1); */
export function constant_<T extends Tensor>(tensor: T, value: Scalar): T;
export function constant_(...values: unknown[]): Tensor {
  const { x, value } = constantParameters(values);
  return filledWith(x, value);
}
const constantParameters = parameters("init.constant_", { x, value: operand(aScalar) });

/** Fills a tensor with ones. Returns the tensor. */
export function ones_<T extends Tensor>(tensor: T): T;
export function ones_(...values: unknown[]): Tensor {
  return filledWith(onesParameters(values).x, 1);
}
const onesParameters = parameters("init.ones_", { x });

/** Fills a tensor with zeros. Returns the tensor. */
export function zeros_<T extends Tensor>(tensor: T): T;
export function zeros_(...values: unknown[]): Tensor {
  return filledWith(zerosParameters(values).x, 0);
}
const zerosParameters = parameters("init.zeros_", { x });
