import { underName } from "../../backend/dispatch.ts";
import { firstBackend } from "../../backend/registry.ts";
import { ArgumentError, DTypeError } from "../../core/errors.ts";
import { aNumber, someNumber } from "../../core/kinds.ts";
import { finite } from "../../core/options.ts";
import { optional, parameters, required } from "../../core/parameters.ts";
import { type DType, integerRange, isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { pow } from "../elementwise/power.ts";
import { type CreationOptions, checkCreation, checkReal, creationOptions } from "./create.ts";
import { linspace } from "./linspace.ts";
import { type TensorOptions, tensor } from "./tensor.ts";

/**
 * Returns `steps` powers of a base with equally spaced exponents from `start` to `end`, both included. They are
 * computed in float64 and rounded once to the dtype. An integer dtype truncates them toward zero.
 *
 * @param steps the number of elements; 1 gives the first
 * @param base default 10
 * @param options `dtype`: default float32
 * @returns [steps]
 *
 * @example
 * logspace(0, 2, 3); // float32 [1, 10, 100]
 * logspace(0, 3, 4, 2); // float32 [1, 2, 4, 8]
 *
 * @throws {ArgumentError} for NaN or infinity.
 * @throws {ShapeError} if `steps` is not a whole number of at least 0.
 * @throws {DTypeError} if an integer dtype can't hold a power.
 */
export function logspace<D extends DType = "float32">(
  start: number,
  end: number,
  steps: number,
  options?: CreationOptions<D> & { base?: number | undefined },
): Tensor<D>;
export function logspace<D extends DType = "float32">(
  start: number,
  end: number,
  steps: number,
  base: number,
  options?: CreationOptions<D>,
): Tensor<D>;
export function logspace(...values: unknown[]): Tensor {
  const { steps, base, dtype = "float32", start: from, end: to, ...options } = logspaceParameters(values);
  const [start, end] = isFloat(dtype) ? [from, to] : [Math.trunc(from), Math.trunc(to)]; // as PyTorch does
  checkCreation("logspace", [steps], dtype, options);
  for (const [name, value] of Object.entries({ start, end })) {
    if (!Number.isFinite(value))
      throw new ArgumentError("logspace", "notFinite", `expected ${name} to be a finite number, got ${value}`);
  }
  if (steps > MOST_STEPS)
    throw new ArgumentError("logspace", "tooMany", `expected at most ${MOST_STEPS} steps, got ${steps}`);
  if (isFloat(dtype) && dtype !== "float64" && isPlain(options)) return powersOf(base, { start, end, steps, dtype });
  const powers = Array.from({ length: steps }, (_, at) => heldPower(base ** exponentAt(start, end, steps, at), dtype));
  return tensor(powers, { ...options, dtype } as TensorOptions<DType> & { dtype: DType });
}
const logspaceParameters = parameters("logspace", {
  start: required(someNumber),
  end: required(someNumber),
  steps: required(someNumber),
  base: optional(aNumber(finite), 10),
  ...creationOptions,
});

/** Whether the cpu backend can compute the powers in float64 and no option affects how the result is created. */
const isPlain = ({ label, storage, requiresGrad }: CreationOptions): boolean =>
  firstBackend() === "cpu" && label === undefined && storage === undefined && !requiresGrad;

interface Exponents {
  readonly start: number;
  readonly end: number;
  readonly steps: number;
  readonly dtype: DType;
}

/** Computes powers in float64. Their last bit may be wrong, which rounding to the narrower dtype hides. */
const powersOf = (base: number, { start, end, steps, dtype }: Exponents): Tensor =>
  underName("logspace", () => tidy(() => toDType(pow(base, linspace(start, end, steps, { dtype: "float64" })), dtype)));

/** The maximum number of powers, which are computed in a list on the host. */
const MOST_STEPS = 2 ** 27;

/** Computes exponents from the start in the first half and from the end in the second, as `linspace` does. */
function exponentAt(start: number, end: number, steps: number, at: number): number {
  const step = steps > 1 ? (end - start) / (steps - 1) : 0;
  return at < Math.max(1, Math.floor(steps / 2)) ? start + at * step : end - (steps - 1 - at) * step;
}

/** Truncates a power for an integer dtype. @throws {DTypeError} if the dtype can't hold it */
function heldPower(power: number, dtype: DType): number {
  checkReal("logspace", dtype);
  if (isFloat(dtype)) return power;
  const whole = Math.trunc(power);
  const [least, most] = integerRange(dtype);
  if (whole >= least && whole <= most) return whole;
  throw new DTypeError("logspace", "doesNotFit", `expected powers from ${least} to ${most} for ${dtype}, got ${power}`);
}
