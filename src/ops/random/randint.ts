import { ArgumentError, DTypeError } from "../../core/errors.ts";
import { aBigint, either, isArray, someNumber } from "../../core/kinds.ts";
import { operand, optional, parameters, required } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { type DType, integerRange, isFloat, type RealDType } from "../../tensor/dtype.ts";
import { shapeList, tensorOrGone } from "../../tensor/kinds.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkDType, checkReal } from "../creation/create.ts";
import { drawTensor, type RandomOptions, randomOptions } from "./distribution.ts";

type Bound = number | bigint;

/**
 * Returns random integers in [low, high) with equal probabilities, up to an error below 2⁻⁶⁴.
 *
 * @param low the smallest number; default 0
 * @param high one more than the largest number
 * @param options `dtype`: default int64; a float dtype must hold all numbers exactly; `generator`
 *
 * @example
 * randint(0, 10, [5]); // int64[5] of digits
 *
 * @throws {ArgumentError} unless both are whole and low < high.
 * @throws {DTypeError} if the dtype can't hold all numbers.
 */
export function randint<D extends DType = "int64">(
  ...range:
    | [low: Bound, high: Bound, shape: Shape, options?: RandomOptions<D>]
    | [high: Bound, shape: Shape, options?: RandomOptions<D>]
): Tensor<D>;
export function randint(...values: unknown[]): Tensor {
  const {
    low,
    high,
    shape,
    dtype = "int64",
    ...options
  } = randintParameters(isArray(values[1]) ? [0, ...values] : values);
  return drawIntegers("randint", low, high, shape, dtype, options);
}
const bound = either(someNumber, aBigint);
const randintParameters = parameters("randint", {
  low: required(bound),
  high: required(bound),
  shape: required(shapeList),
  ...randomOptions,
});

/**
 * Returns random integers in [low, high) in the shape and, by default, the dtype of `x`. Without `low`, from 0 on.
 *
 * @example
 * randintLike(zeros([2, 3]), 10, { dtype: "int64" }); // six integers from 0 to 9
 *
 * @throws as {@link randint}
 */
export function randintLike<D extends DType, E extends DType = D>(
  x: Tensor<D>,
  low: Bound,
  high: Bound,
  options?: RandomOptions<E>,
): Tensor<E>;
export function randintLike<D extends DType, E extends DType = D>(
  x: Tensor<D>,
  high: Bound,
  options?: RandomOptions<E>,
): Tensor<E>;
export function randintLike(...values: unknown[]): Tensor {
  const { x, low, high, dtype = x.dtype, ...options } = randintLikeParameters(values);
  return high === undefined
    ? drawIntegers("randintLike", 0, low, x.shape, dtype, options)
    : drawIntegers("randintLike", low, high, x.shape, dtype, options);
}
const randintLikeParameters = parameters("randintLike", {
  x: operand(tensorOrGone),
  low: required(bound), // `high`, if it is the only bound
  high: optional(bound),
  ...randomOptions,
});

function drawIntegers<D extends DType>(
  operation: string,
  low: Bound,
  high: Bound,
  shape: Shape,
  dtype: D,
  options: RandomOptions,
): Tensor<D> {
  checkDType(operation, dtype);
  checkReal(operation, dtype);
  const [least, end] = tupleOf(
    [low, high].map((bound) => whole(operation, bound)),
    2,
  );
  if (least >= end) throw new ArgumentError(operation, "emptyRange", `expected low < high, got ${low} and ${high}`);
  const [first, last] = held(dtype);
  if (least < first || end - 1n > last)
    throw new DTypeError(
      operation,
      "doesNotFit",
      `expected numbers from ${first} to ${last} for ${dtype}, got ${low} to ${end - 1n}`,
    );
  return drawTensor(operation, shape, dtype, { kind: "integers", least, choices: end - least }, options);
}

function whole(operation: string, value: Bound): bigint {
  if (typeof value === "bigint" || Number.isInteger(value)) return BigInt(value);
  throw new ArgumentError(operation, "notWhole", `expected low and high to be whole numbers, got ${String(value)}`);
}

const significantBits = { float64: 53n, float32: 24n, float16: 11n, bfloat16: 8n } as const;

/** Returns the range in which a dtype holds every whole number. */
function held(dtype: RealDType): readonly [bigint, bigint] {
  if (!isFloat(dtype)) return integerRange(dtype);
  const most = 2n ** significantBits[dtype];
  return [-most, most];
}
