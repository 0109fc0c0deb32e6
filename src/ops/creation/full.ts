import { empty as allocate } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError } from "../../core/errors.ts";
import { type DType, integerRange, isFloat } from "../../tensor/dtype.ts";
import { type Scalar, scalarDType } from "../../tensor/promotion.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type CreationOptions, checkCreation, create } from "./create.ts";
import { fillPrimitive } from "./fill.ts";

/** The dtype of `full` by its value: booleans bool, bigints int64, whole numbers int64, other numbers float32. */
export type DTypeOfFill<V extends Scalar> = V extends boolean
  ? "bool"
  : V extends bigint
    ? "int64"
    : "float32" | "int64";

/**
 * A tensor whose elements are all `value`.
 *
 * @param shape at most 8 sizes of at least 0
 * @param value with an integer dtype it loses its fraction
 * @param options `dtype` as PyTorch's by default: booleans bool, bigints and whole numbers int64, other numbers float32
 *
 * @example
 * full([2, 3], 0.5); // float32[2, 3]
 * full([4], 7, { dtype: "int32" });
 *
 * @throws {ShapeError} for a shape that is none. @throws {DTypeError} where the value does not fit the dtype.
 */
export function full<D extends DType>(
  shape: Shape,
  value: Scalar,
  options: CreationOptions<D> & { dtype: D },
): Tensor<D>;
export function full<V extends Scalar>(
  shape: Shape,
  value: V,
  options?: CreationOptions<never>,
): Tensor<DTypeOfFill<V>>;
export function full(shape: Shape, value: Scalar, options: CreationOptions = {}): Tensor {
  return filled("full", shape, value, options.dtype ?? scalarDType(checkValue("full", value)), options);
}

/**
 * A tensor of zeros.
 *
 * @param options `dtype`, by default float32
 *
 * @example
 * zeros([2, 3], { requiresGrad: true });
 *
 * @throws {ShapeError}
 */
export const zeros = <D extends DType = "float32">(shape: Shape, options: CreationOptions<D> = {}): Tensor<D> =>
  filled("zeros", shape, 0, options.dtype ?? "float32", options) as Tensor<D>;

/**
 * A tensor of ones. @see {@link zeros}
 *
 * @example
 * ones([2, 2]); // float32 [[1, 1], [1, 1]]
 */
export const ones = <D extends DType = "float32">(shape: Shape, options: CreationOptions<D> = {}): Tensor<D> =>
  filled("ones", shape, 1, options.dtype ?? "float32", options) as Tensor<D>;

/** A tensor with undefined contents, to be written before it is read. @see {@link zeros} */
export function empty<D extends DType = "float32">(shape: Shape, options: CreationOptions<D> = {}): Tensor<D> {
  const dtype = options.dtype ?? ("float32" as D);
  return uninitialized("empty", shape, dtype, options);
}

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

/** Zeros in the shape and, where none is given, the dtype of `x`. */
export const zerosLike = <D extends DType>(x: Tensor<D>, options: CreationOptions<D> = {}): Tensor<D> =>
  filled("zerosLike", x.shape, 0, options.dtype ?? x.dtype, options) as Tensor<D>;

/** Ones in the shape and, where none is given, the dtype of `x`. */
export const onesLike = <D extends DType>(x: Tensor<D>, options: CreationOptions<D> = {}): Tensor<D> =>
  filled("onesLike", x.shape, 1, options.dtype ?? x.dtype, options) as Tensor<D>;

/**
 * Copies of `value` in the shape and, where none is given, the dtype of `x`. @throws {DTypeError} where the value does
 * not fit.
 */
export const fullLike = <D extends DType>(x: Tensor<D>, value: Scalar, options: CreationOptions<D> = {}): Tensor<D> =>
  filled("fullLike", x.shape, value, options.dtype ?? x.dtype, options) as Tensor<D>;

/** Undefined contents in the shape and, where none is given, the dtype of `x`. */
export const emptyLike = <D extends DType>(x: Tensor<D>, options: CreationOptions<D> = {}): Tensor<D> =>
  uninitialized("emptyLike", x.shape, options.dtype ?? x.dtype, options) as Tensor<D>;

function filled(operation: string, shape: Shape, value: Scalar, dtype: DType, options: CreationOptions): Tensor {
  checkCreation(operation, shape, dtype, options);
  checkFit(operation, checkValue(operation, value), dtype);
  return create(operation, fillPrimitive, shape, dtype, { value }, options);
}

function checkValue(operation: string, value: unknown): Scalar {
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return value;
  throw new ArgumentError(operation, "invalidValue", `expected a number, a bigint or a boolean, got ${typeof value}`);
}

/** An integer dtype takes what is in its range once the fraction is gone; NaN and infinity are in none. */
function checkFit(operation: string, value: Scalar, dtype: DType): void {
  if (isFloat(dtype) || dtype === "bool" || typeof value === "boolean") return;
  const [least, most] = integerRange(dtype);
  const whole = typeof value === "number" ? Math.trunc(value) : value;
  if (whole >= least && whole <= most) return;
  throw new DTypeError(
    operation,
    "doesNotFit",
    `expected a whole number from ${least} to ${most} for ${dtype}, got ${value}`,
  );
}
