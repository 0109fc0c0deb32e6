/** Frequencies of the elements of a transform, and their order. */
import { aNumber, axes } from "../core/kinds.ts";
import { count, positive } from "../core/options.ts";
import { type Given, operand, optional, parameters, required } from "../core/parameters.ts";
import { type CreationOptions, checkFloat, creationOptions } from "../ops/creation/create.ts";
import { tensor } from "../ops/creation/tensor.ts";
import { roll } from "../ops/join/roll.ts";
import type { DType, FloatDType } from "../tensor/dtype.ts";
import { aTensor } from "../tensor/kinds.ts";
import { reserve } from "../tensor/reserve.ts";
import { normalizeAxes } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** Options of {@link fftfreq} and {@link rfftfreq}. */
export interface FrequencyOptions<D extends FloatDType = FloatDType> extends CreationOptions<D> {
  /** The time between two samples; frequencies are cycles per unit of it. Default 1. */
  d?: number | undefined;
}

const frequencyParameters = (operation: string) =>
  parameters(operation, {
    n: required(aNumber(count)),
    d: optional(aNumber(positive), 1),
    ...creationOptions,
  });

function frequencies(
  operation: string,
  { n, d, dtype = "float32", ...options }: ReturnType<ReturnType<typeof frequencyParameters>>,
  count: number,
  cyclesOf: (k: number) => number,
): Tensor {
  checkFloat(operation, dtype);
  reserve(8 * count);
  const values = Float64Array.from({ length: count }, (_, k) => cyclesOf(k) / (n * d));
  return tensor(values, { ...options, dtype } as { dtype: FloatDType });
}

/**
 * Returns the frequency of each element of a transform of n elements: 0, 1, … and then the negative ones, divided by
 * n d.
 *
 * @example
 * fft.fftfreq(4); // float32 [0, 0.25, -0.5, -0.25]
 *
 * @throws {ArgumentError} if n is below 1, or d is not above 0. @throws {DTypeError} if the dtype is not a float.
 */
export function fftfreq<D extends FloatDType = "float32">(
  n: number,
  ...options: Given<FrequencyOptions<D>, ["d"]>
): Tensor<D>;
export function fftfreq(...values: unknown[]): Tensor {
  const given = fftfreqParameters(values);
  return frequencies("fftfreq", given, given.n, (k) => (2 * k < given.n ? k : k - given.n));
}
const fftfreqParameters = frequencyParameters("fftfreq");

/**
 * Returns the frequency of each element of `rfft` of n elements: 0 to n / 2 (rounded down), divided by n d.
 *
 * @example
 * fft.rfftfreq(4); // float32 [0, 0.25, 0.5]
 *
 * @throws {ArgumentError} if n is below 1, or d is not above 0. @throws {DTypeError} if the dtype is not a float.
 */
export function rfftfreq<D extends FloatDType = "float32">(
  n: number,
  ...options: Given<FrequencyOptions<D>, ["d"]>
): Tensor<D>;
export function rfftfreq(...values: unknown[]): Tensor {
  const given = rfftfreqParameters(values);
  return frequencies("rfftfreq", given, Math.floor(given.n / 2) + 1, (k) => k);
}
const rfftfreqParameters = frequencyParameters("rfftfreq");

/** Options of {@link fftshift} and {@link ifftshift}. */
export interface ShiftOptions {
  /** The axes. Default: all. */
  dim?: number | readonly number[] | undefined;
}

const shiftParameters = (operation: string) => parameters(operation, { x: operand(aTensor), dim: optional(axes) });

function shifted(
  operation: string,
  { x, dim }: ReturnType<ReturnType<typeof shiftParameters>>,
  by: (size: number) => number,
): Tensor {
  const dims = normalizeAxes(operation, dim, x.rank);
  if (dims.length === 0) return x;
  return roll(
    x,
    dims.map((axis) => by(x.shape[axis])),
    { dims },
  );
}

/**
 * Moves the element of frequency 0 to the middle of each axis.
 *
 * @example
 * fft.fftshift(fft.fftfreq(4)); // float32 [-0.5, -0.25, 0, 0.25]
 *
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function fftshift<D extends DType>(x: Tensor<D>, ...options: Given<ShiftOptions, ["dim"]>): Tensor<D>;
export function fftshift(...values: unknown[]): Tensor {
  return shifted("fftshift", fftshiftParameters(values), (size) => Math.floor(size / 2));
}
const fftshiftParameters = shiftParameters("fftshift");

/**
 * Undoes {@link fftshift}.
 *
 * @example
 * fft.ifftshift(tensor([-0.5, -0.25, 0, 0.25])); // float32 [0, 0.25, -0.5, -0.25]
 *
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function ifftshift<D extends DType>(x: Tensor<D>, ...options: Given<ShiftOptions, ["dim"]>): Tensor<D>;
export function ifftshift(...values: unknown[]): Tensor {
  return shifted("ifftshift", ifftshiftParameters(values), (size) => -Math.floor(size / 2));
}
const ifftshiftParameters = shiftParameters("ifftshift");
