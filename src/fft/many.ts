/** Transforms of several axes. */
import { underName } from "../backend/dispatch.ts";
import { ArgumentError } from "../core/errors.ts";
import type { Given } from "../core/parameters.ts";
import type { ComplexFrom } from "../ops/complex/parts.ts";
import type { DType } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import {
  asReal,
  checkLength,
  complexLines,
  type FftManyOptions,
  linesOf,
  manyParameters,
  realLine,
  scaleOf,
  spectrumLine,
} from "./lines.ts";
import type { RealFrom } from "./one.ts";

/** The options of a transform of several axes, which may also be passed by position. */
export type FftManyArguments = Given<FftManyOptions, ["s", "dim", "norm"]>;

type Parsed = ReturnType<ReturnType<typeof manyParameters>>;
type Lines = ReturnType<typeof linesOf>;

/** The axes of transforms of matrices. */
const PLANE = [-2, -1] as const;

interface Passes {
  readonly operation: string;
  readonly norm: Parsed["norm"];
  readonly inverse: boolean;
}

/** Transforms complex or real numbers along each axis. */
const complexAxes = (x: Tensor, lines: Lines, { operation, norm, inverse }: Passes): Tensor =>
  complexLines(
    x,
    lines.map(({ axis, length }) => ({ operation, axis, length, inverse, scale: scaleOf(norm, length, inverse) })),
  );

function complexMany(operation: string, { x, s, dim, norm }: Parsed, inverse: boolean): Tensor {
  const lines = linesOf(operation, x, s, dim);
  return underName(operation, () => tidy(() => complexAxes(x, lines, { operation, norm, inverse })));
}

/** Transforms real numbers along the last of the axes, and the spectra along the others. */
function spectrumMany(operation: string, { x, s, dim, norm }: Parsed, inverse: boolean): Tensor {
  const lines = linesOf(operation, x, s, dim);
  const { axis, length } = lastOf(operation, lines);
  return underName(operation, () =>
    tidy(() => {
      const line = { operation, axis, length, inverse, scale: scaleOf(norm, length, inverse) };
      return complexAxes(spectrumLine(asReal(operation, x), line), lines.slice(0, -1), { operation, norm, inverse });
    }),
  );
}

/** The inverse transform to real numbers: the last axis of x has half of a spectrum. */
function realMany(operation: string, { x, s, dim, norm }: Parsed, inverse: boolean): Tensor {
  const lines = linesOf(operation, x, s, dim);
  const { axis } = lastOf(operation, lines);
  const given = s?.at(-1) ?? -1;
  const length = checkLength(operation, given === -1 ? 2 * (x.shape[axis] - 1) : given);
  return underName(operation, () =>
    tidy(() => {
      const spectra = complexAxes(x, lines.slice(0, -1), { operation, norm, inverse });
      return realLine(spectra, { operation, axis, length, inverse, scale: scaleOf(norm, length, inverse) });
    }),
  );
}

function lastOf(operation: string, lines: Lines): Lines[number] {
  const last = lines.at(-1);
  if (last) return last;
  throw new ArgumentError(operation, "noAxes", "expected at least one axis, got none");
}

/**
 * Computes the discrete Fourier transform along several axes: see `fft.fft`.
 *
 * @example
 * fft.fftn(tensor([[1, 2], [3, 4]])); // complex64 [[10+0i, -2+0i], [-4+0i, 0+0i]]
 *
 * @throws {ShapeError} for an axis out of range or given twice. @throws {ArgumentError} for a length below 1, or
 * unless there are as many lengths as axes.
 */
export function fftn<D extends DType>(x: Tensor<D>, ...options: FftManyArguments): Tensor<ComplexFrom<D>>;
export function fftn(...values: unknown[]): Tensor {
  return complexMany("fftn", fftnParameters(values), false);
}
const fftnParameters = manyParameters("fftn");

/**
 * Computes the inverse Fourier transform along several axes: see `fft.ifft`.
 *
 * @example
 * fft.ifftn(tensor([[4, 0], [0, 0]])); // complex64 [[1+0i, 1+0i], [1+0i, 1+0i]]
 *
 * @throws {ShapeError} for an axis out of range or given twice. @throws {ArgumentError} for a length below 1, or
 * unless there are as many lengths as axes.
 */
export function ifftn<D extends DType>(x: Tensor<D>, ...options: FftManyArguments): Tensor<ComplexFrom<D>>;
export function ifftn(...values: unknown[]): Tensor {
  return complexMany("ifftn", ifftnParameters(values), true);
}
const ifftnParameters = manyParameters("ifftn");

/**
 * Computes the Fourier transform of real numbers along several axes; the last axis has the first half of the
 * spectrum: see `fft.rfft`.
 *
 * @example
 * fft.rfftn(tensor([[1, 2], [3, 4]])); // complex64 [[10+0i, -2+0i], [-4+0i, 0+0i]]
 *
 * @throws {ShapeError} for an axis out of range or given twice. @throws {ArgumentError} for a length below 1, or
 * unless there are as many lengths as axes.
 * @throws {DTypeError} if x is complex.
 */
export function rfftn<D extends DType>(x: Tensor<D>, ...options: FftManyArguments): Tensor<ComplexFrom<D>>;
export function rfftn(...values: unknown[]): Tensor {
  return spectrumMany("rfftn", rfftnParameters(values), false);
}
const rfftnParameters = manyParameters("rfftn");

/**
 * Computes the inverse of {@link rfftn}: real numbers from a spectrum whose last axis has the first half.
 *
 * @example
 * fft.irfftn(fft.rfftn(tensor([[1, 2], [3, 4]]))); // float32 [[1, 2], [3, 4]]
 *
 * @throws {ShapeError} for an axis out of range or given twice. @throws {ArgumentError} for a length below 1, or
 * unless there are as many lengths as axes.
 */
export function irfftn<D extends DType>(x: Tensor<D>, ...options: FftManyArguments): Tensor<RealFrom<D>>;
export function irfftn(...values: unknown[]): Tensor {
  return realMany("irfftn", irfftnParameters(values), true);
}
const irfftnParameters = manyParameters("irfftn");

/**
 * Computes the Fourier transform, which is real, of a signal whose last axis has the first half of a Hermitian
 * signal: see `fft.hfft`.
 *
 * @example
 * fft.hfftn(tensor([[1, 2], [3, 4]])); // float32 [[10, -2], [-4, 0]]
 *
 * @throws {ShapeError} for an axis out of range or given twice. @throws {ArgumentError} for a length below 1, or
 * unless there are as many lengths as axes.
 */
export function hfftn<D extends DType>(x: Tensor<D>, ...options: FftManyArguments): Tensor<RealFrom<D>>;
export function hfftn(...values: unknown[]): Tensor {
  return realMany("hfftn", hfftnParameters(values), false);
}
const hfftnParameters = manyParameters("hfftn");

/**
 * Computes the inverse of {@link hfftn}: the last axis of the result has the first half of a Hermitian signal.
 *
 * @example
 * fft.ihfftn(tensor([[4, 0], [0, 0]])); // complex64 [[1+0i, 1+0i], [1+0i, 1+0i]]
 *
 * @throws {ShapeError} for an axis out of range or given twice. @throws {ArgumentError} for a length below 1, or
 * unless there are as many lengths as axes.
 * @throws {DTypeError} if x is complex.
 */
export function ihfftn<D extends DType>(x: Tensor<D>, ...options: FftManyArguments): Tensor<ComplexFrom<D>>;
export function ihfftn(...values: unknown[]): Tensor {
  return spectrumMany("ihfftn", ihfftnParameters(values), true);
}
const ihfftnParameters = manyParameters("ihfftn");

/**
 * Computes the discrete Fourier transform along two axes, by default the last two: see `fft.fft`.
 *
 * @example
 * fft.fft2(tensor([[1, 2], [3, 4]])); // complex64 [[10+0i, -2+0i], [-4+0i, 0+0i]]
 *
 * @throws {ShapeError} for an axis out of range or given twice. @throws {ArgumentError} for a length below 1, or
 * unless there are as many lengths as axes.
 */
export function fft2<D extends DType>(x: Tensor<D>, ...options: FftManyArguments): Tensor<ComplexFrom<D>>;
export function fft2(...values: unknown[]): Tensor {
  return complexMany("fft2", fft2Parameters(values), false);
}
const fft2Parameters = manyParameters("fft2", PLANE);

/**
 * Computes the inverse Fourier transform along two axes, by default the last two: see `fft.ifft`.
 *
 * @example
 * fft.ifft2(tensor([[4, 0], [0, 0]])); // complex64 [[1+0i, 1+0i], [1+0i, 1+0i]]
 *
 * @throws {ShapeError} for an axis out of range or given twice. @throws {ArgumentError} for a length below 1, or
 * unless there are as many lengths as axes.
 */
export function ifft2<D extends DType>(x: Tensor<D>, ...options: FftManyArguments): Tensor<ComplexFrom<D>>;
export function ifft2(...values: unknown[]): Tensor {
  return complexMany("ifft2", ifft2Parameters(values), true);
}
const ifft2Parameters = manyParameters("ifft2", PLANE);

/**
 * Computes the Fourier transform of real numbers along two axes, by default the last two. The last axis has the first
 * half of the spectrum: see `fft.rfft`.
 *
 * @example
 * fft.rfft2(tensor([[1, 2], [3, 4]])); // complex64 [[10+0i, -2+0i], [-4+0i, 0+0i]]
 *
 * @throws {ShapeError} for an axis out of range or given twice. @throws {ArgumentError} for a length below 1, or
 * unless there are as many lengths as axes.
 * @throws {DTypeError} if x is complex.
 */
export function rfft2<D extends DType>(x: Tensor<D>, ...options: FftManyArguments): Tensor<ComplexFrom<D>>;
export function rfft2(...values: unknown[]): Tensor {
  return spectrumMany("rfft2", rfft2Parameters(values), false);
}
const rfft2Parameters = manyParameters("rfft2", PLANE);

/**
 * Computes the inverse of {@link rfft2}: real numbers from a spectrum whose last axis has the first half.
 *
 * @example
 * fft.irfft2(fft.rfft2(tensor([[1, 2], [3, 4]]))); // float32 [[1, 2], [3, 4]]
 *
 * @throws {ShapeError} for an axis out of range or given twice. @throws {ArgumentError} for a length below 1, or
 * unless there are as many lengths as axes.
 */
export function irfft2<D extends DType>(x: Tensor<D>, ...options: FftManyArguments): Tensor<RealFrom<D>>;
export function irfft2(...values: unknown[]): Tensor {
  return realMany("irfft2", irfft2Parameters(values), true);
}
const irfft2Parameters = manyParameters("irfft2", PLANE);

/**
 * Computes the Fourier transform, which is real, of a signal whose last axis has the first half of a Hermitian
 * signal: see `fft.hfft`.
 *
 * @example
 * fft.hfft2(tensor([[1, 2], [3, 4]])); // float32 [[10, -2], [-4, 0]]
 *
 * @throws {ShapeError} for an axis out of range or given twice. @throws {ArgumentError} for a length below 1, or
 * unless there are as many lengths as axes.
 */
export function hfft2<D extends DType>(x: Tensor<D>, ...options: FftManyArguments): Tensor<RealFrom<D>>;
export function hfft2(...values: unknown[]): Tensor {
  return realMany("hfft2", hfft2Parameters(values), false);
}
const hfft2Parameters = manyParameters("hfft2", PLANE);

/**
 * Computes the inverse of {@link hfft2}: the last axis of the result has the first half of a Hermitian signal.
 *
 * @example
 * fft.ihfft2(tensor([[4, 0], [0, 0]])); // complex64 [[1+0i, 1+0i], [1+0i, 1+0i]]
 *
 * @throws {ShapeError} for an axis out of range or given twice. @throws {ArgumentError} for a length below 1, or
 * unless there are as many lengths as axes.
 * @throws {DTypeError} if x is complex.
 */
export function ihfft2<D extends DType>(x: Tensor<D>, ...options: FftManyArguments): Tensor<ComplexFrom<D>>;
export function ihfft2(...values: unknown[]): Tensor {
  return spectrumMany("ihfft2", ihfft2Parameters(values), true);
}
const ihfft2Parameters = manyParameters("ihfft2", PLANE);
