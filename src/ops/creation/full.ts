import { empty as allocate } from "../../backend/allocation.ts";
import { DTypeError } from "../../core/errors.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { type DType, integerRange, isInteger } from "../../tensor/dtype.ts";
import { aScalar, aShape, type SizedArguments, shapeList, tensorOrGone } from "../../tensor/kinds.ts";
import { plainDType, type Scalar } from "../../tensor/promotion.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type CreationOptions, checkCreation, create, creationOptions } from "./create.ts";
import { fillPrimitive } from "./fill.ts";
import type { DTypeOfValue } from "./tensor.ts";

/**
 * Returns a tensor filled with `value`.
 *
 * @param shape at most 8 sizes of at least 0
 * @param value a number, or a tensor without axes. With an integer dtype the fraction is truncated
 * @param options `dtype`: by default as in PyTorch, bool for booleans, int64 for bigints and whole numbers, float32 for
 * other numbers
 *
 * @example
 * full([2, 3], 0.5); // float32[2, 3]
 * full([4], 7, { dtype: "int32" });
 *
 * @throws {ShapeError} for an invalid shape.
 * @throws {DTypeError} if the dtype can't hold the value.
 */
export function full<D extends DType>(
  shape: Shape,
  value: Scalar | Tensor,
  options: CreationOptions<D> & { dtype: D },
): Tensor<D>;
export function full<V extends Scalar>(
  shape: Shape,
  value: V,
  options?: CreationOptions<never>,
): Tensor<DTypeOfValue<V>>;
export function full(shape: Shape, value: Tensor, options?: CreationOptions<never>): Tensor;
export function full(...values: unknown[]): Tensor {
  const { shape, value, dtype = plainDType([value]), ...options } = fullParameters(values);
  return filled("full", shape, value, dtype, options);
}
const fullParameters = parameters("full", {
  shape: required(shapeList),
  value: required(aScalar),
  ...creationOptions,
});

/**
 * Returns a tensor of zeros.
 *
 * @param options `dtype`: default float32
 *
 * @example
 * zeros([2, 3], { requiresGrad: true });
 *
 * @throws {ShapeError} for an invalid shape.
 */
export function zeros<D extends DType = "float32">(...shape: SizedArguments<CreationOptions<D>>): Tensor<D>;
export function zeros(...values: unknown[]): Tensor {
  const { shape, dtype = "float32", ...options } = zerosParameters(values);
  return filled("zeros", shape, 0, dtype, options);
}
const zerosParameters = parameters("zeros", { shape: required(aShape), ...creationOptions });

/**
 * Returns a tensor of ones. @see {@link zeros}
 *
 * @example
 * ones([2, 2]); // float32 [[1, 1], [1, 1]]
 */
export function ones<D extends DType = "float32">(...shape: SizedArguments<CreationOptions<D>>): Tensor<D>;
export function ones(...values: unknown[]): Tensor {
  const { shape, dtype = "float32", ...options } = onesParameters(values);
  return filled("ones", shape, 1, dtype, options);
}
const onesParameters = parameters("ones", { shape: required(aShape), ...creationOptions });

/**
 * Returns an uninitialized tensor, which must be written before it is read. @see {@link zeros}
 *
 * @example
 * empty([2, 3]).fill_(1).shape; // [2, 3]
 */
export function empty<D extends DType = "float32">(...shape: SizedArguments<CreationOptions<D>>): Tensor<D>;
export function empty(...values: unknown[]): Tensor {
  const { shape, dtype = "float32", ...options } = emptyParameters(values);
  return uninitialized("empty", shape, dtype, options);
}
const emptyParameters = parameters("empty", { shape: required(aShape), ...creationOptions });

function uninitialized<D extends DType>(
  operation: string,
  shape: Shape,
  dtype: D,
  options: CreationOptions,
): Tensor<D> {
  checkCreation(operation, shape, dtype, options);
  const result = allocate([...shape], dtype, options, operation);
  if (options.requiresGrad) result.requiresGrad = true;
  return result;
}

/**
 * Returns zeros in the shape and, by default, the dtype of `x`.
 *
 * @example
 * zerosLike(tensor([1, 2])); // float32 [0, 0]
 */
export function zerosLike<D extends DType, E extends DType = D>(x: Tensor<D>, options?: CreationOptions<E>): Tensor<E>;
export function zerosLike(...values: unknown[]): Tensor {
  const { x, dtype = x.dtype, ...options } = zerosLikeParameters(values);
  return filled("zerosLike", x.shape, 0, dtype, options);
}
const zerosLikeParameters = parameters("zerosLike", { x: operand(tensorOrGone), ...creationOptions });

/**
 * Returns ones in the shape and, by default, the dtype of `x`.
 *
 * @example
 * onesLike(tensor([1, 2]), { dtype: "int64" }); // int64 [1, 1]
 */
export function onesLike<D extends DType, E extends DType = D>(x: Tensor<D>, options?: CreationOptions<E>): Tensor<E>;
export function onesLike(...values: unknown[]): Tensor {
  const { x, dtype = x.dtype, ...options } = onesLikeParameters(values);
  return filled("onesLike", x.shape, 1, dtype, options);
}
const onesLikeParameters = parameters("onesLike", { x: operand(tensorOrGone), ...creationOptions });

/**
 * Returns a tensor filled with `value` in the shape and, by default, the dtype of `x`.
 *
 * @example
 * fullLike(tensor([1, 2]), 7); // float32 [7, 7]
 *
 * @throws {DTypeError} if the dtype can't hold the value.
 */
export function fullLike<D extends DType, E extends DType = D>(
  x: Tensor<D>,
  value: Scalar | Tensor,
  options?: CreationOptions<E>,
): Tensor<E>;
export function fullLike(...values: unknown[]): Tensor {
  const { x, value, dtype = x.dtype, ...options } = fullLikeParameters(values);
  return filled("fullLike", x.shape, value, dtype, options);
}
const fullLikeParameters = parameters("fullLike", {
  x: operand(tensorOrGone),
  value: required(aScalar),
  ...creationOptions,
});

/**
 * Returns an uninitialized tensor in the shape and, by default, the dtype of `x`.
 *
 * @example
 * emptyLike(x).copy_(x);
 */
export function emptyLike<D extends DType, E extends DType = D>(x: Tensor<D>, options?: CreationOptions<E>): Tensor<E>;
export function emptyLike(...values: unknown[]): Tensor {
  const { x, dtype = x.dtype, ...options } = emptyLikeParameters(values);
  return uninitialized("emptyLike", x.shape, dtype, options);
}
const emptyLikeParameters = parameters("emptyLike", { x: operand(tensorOrGone), ...creationOptions });

function filled(operation: string, shape: Shape, value: Scalar, dtype: DType, options: CreationOptions): Tensor {
  checkCreation(operation, shape, dtype, options);
  checkFit(operation, value, dtype);
  return create(operation, fillPrimitive, shape, dtype, { value }, options);
}

/** Checks that a value is in the range of an integer dtype after truncation. NaN and infinity never are. */
function checkFit(operation: string, value: Scalar, dtype: DType): void {
  if (!isInteger(dtype) || typeof value === "boolean") return;
  const [least, most] = integerRange(dtype);
  const whole = typeof value === "number" ? Math.trunc(value) : value;
  if (whole >= least && whole <= most) return;
  throw new DTypeError(
    operation,
    "doesNotFit",
    `expected a whole number from ${least} to ${most} for ${dtype}, got ${value}`,
  );
}
