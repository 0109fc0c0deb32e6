import { ArgumentError, DTypeError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { parameters, required } from "../../core/parameters.ts";
import { type DType, integerRange, isFloat, isInteger } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type CreationOptions, checkCreation, create, creationOptions } from "./create.ts";
import { rangePrimitive, wholeRangePrimitive } from "./range.ts";

/**
 * Returns `steps` equally spaced numbers from `start` to `end`, both included. They are computed in float64, the first
 * half from the start and the second from the end, and rounded once to the dtype. With an integer dtype the ends are
 * truncated first, and the numbers between are truncated toward zero.
 *
 * @param steps the number of elements; 1 gives the start
 * @param options `dtype`: default float32
 * @returns [steps]
 *
 * @example
 * linspace(0, 1, 5); // float32 [0, 0.25, 0.5, 0.75, 1]
 *
 * @throws {ArgumentError} for NaN or infinity.
 * @throws {ShapeError} if `steps` is not a whole number of at least 0.
 * @throws {DTypeError} if an integer dtype can't hold an end.
 */
export function linspace<D extends DType = "float32">(
  start: number,
  end: number,
  steps: number,
  options?: CreationOptions<D>,
): Tensor<D>;
export function linspace(...values: unknown[]): Tensor {
  const { start, end, steps, dtype = "float32", ...options } = linspaceParameters(values);
  checkCreation("linspace", [steps], dtype, options);
  for (const [name, value] of Object.entries({ start, end })) {
    if (!Number.isFinite(value))
      throw new ArgumentError("linspace", "notFinite", `expected ${name} to be a finite number, got ${value}`);
  }
  if (!isFloat(dtype)) return wholeSpace(start, end, steps, dtype, options);
  const step = steps > 1 ? (end - start) / (steps - 1) : 0;
  const forward = steps > 1 ? Math.floor(steps / 2) : 1;
  return create("linspace", rangePrimitive, [steps], dtype, { dtype, start, step, end, forward }, options);
}

const linspaceParameters = parameters("linspace", {
  start: required(someNumber),
  end: required(someNumber),
  steps: required(someNumber),
  ...creationOptions,
});

function wholeSpace<D extends DType>(
  start: number,
  end: number,
  steps: number,
  dtype: D,
  options: CreationOptions,
): Tensor<D> {
  const divisor = BigInt(Math.max(steps - 1, 1));
  const [first, last] = [checkHeld(start, dtype), checkHeld(end, dtype)];
  const span = last - first;
  const attributes = { start: first, step: span / divisor, remainder: span % divisor, divisor };
  return create("linspace", wholeRangePrimitive, [steps], dtype, attributes, options);
}

function checkHeld(value: number, dtype: DType): bigint {
  if (!isInteger(dtype)) throw new DTypeError("linspace", "unsupportedDType", `expected a numeric dtype, got ${dtype}`);
  const [least, most] = integerRange(dtype);
  const whole = Math.trunc(value); // as PyTorch does
  if (whole >= least && whole <= most) return BigInt(whole);
  throw new DTypeError("linspace", "doesNotFit", `expected ends from ${least} to ${most} for ${dtype}, got ${value}`);
}
