/** Transforms of one axis. */
import { underName } from "../backend/dispatch.ts";
import type { Given } from "../core/parameters.ts";
import type { ComplexFrom } from "../ops/complex/parts.ts";
import type { FloatOf } from "../ops/elementwise/types.ts";
import type { DType, RealOf } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import {
  asComplex,
  asReal,
  checkLength,
  complexLine,
  type FftOptions,
  type Line,
  lineAxis,
  lineParameters,
  realLine,
  scaleOf,
  spectrumLine,
} from "./lines.ts";

/** The options of a transform of one axis, which may also be passed by position. */
export type FftArguments = Given<FftOptions, ["n", "dim", "norm"]>;

/** The results of a half-spectrum's transform: float64 for float64 and complex128, else float32. */
export type RealFrom<D extends DType> = FloatOf<RealOf<D>> extends "float64" ? "float64" : "float32";

type Parsed = ReturnType<ReturnType<typeof lineParameters>>;

interface Kind {
  readonly inverse: boolean;
  readonly prepare: (operation: string, x: Tensor) => Tensor;
  readonly run: (x: Tensor, line: Line) => Tensor;
  /** Computes the default of `n` from the size of the axis. Without it, the default is the size itself. */
  readonly lengthOf?: (size: number) => number;
}

const complex = { prepare: (_: string, x: Tensor) => x, run: complexLine } as const;
const toSpectrum = { prepare: asReal, run: spectrumLine } as const;
const toReal = {
  prepare: (_: string, x: Tensor) => asComplex(x),
  run: realLine,
  lengthOf: (size: number) => 2 * (size - 1),
} as const;

function transform(operation: string, { x, n, dim, norm }: Parsed, kind: Kind): Tensor {
  const axis = lineAxis(operation, x, dim);
  const length = checkLength(operation, n ?? kind.lengthOf?.(x.shape[axis]) ?? x.shape[axis]);
  const { inverse } = kind;
  const line = { operation, axis, length, inverse, scale: scaleOf(norm, length, inverse) };
  return underName(operation, () => tidy(() => kind.run(kind.prepare(operation, x), line)));
}

/**
 * Computes the discrete Fourier transform along an axis: X[k] = Σ x[j] e^(−2πi jk / n).
 *
 * @param x complex or real; float16, bfloat16 and integers become float32
 * @returns complex64, or complex128 for float64 and complex128
 *
 * @example
 * fft.fft(tensor([1, 2, 3, 4])); // complex64 [10+0i, -2+2i, -2+0i, -2-2i]
 *
 * @throws {ShapeError} for an axis out of range. @throws {ArgumentError} for a length below 1.
 */
export function fft<D extends DType>(x: Tensor<D>, ...options: FftArguments): Tensor<ComplexFrom<D>>;
export function fft(...values: unknown[]): Tensor {
  return transform("fft", fftParameters(values), { ...complex, inverse: false });
}
const fftParameters = lineParameters("fft");

/**
 * Computes the inverse of {@link fft}: x[j] = 1 / n Σ X[k] e^(2πi jk / n).
 *
 * @param x complex or real; float16, bfloat16 and integers become float32
 * @returns complex64, or complex128 for float64 and complex128
 *
 * @example
 * fft.ifft(tensor([4, 0, 0, 0])); // complex64 [1+0i, 1+0i, 1+0i, 1+0i]
 *
 * @throws {ShapeError} for an axis out of range. @throws {ArgumentError} for a length below 1.
 */
export function ifft<D extends DType>(x: Tensor<D>, ...options: FftArguments): Tensor<ComplexFrom<D>>;
export function ifft(...values: unknown[]): Tensor {
  return transform("ifft", ifftParameters(values), { ...complex, inverse: true });
}
const ifftParameters = lineParameters("ifft");

/**
 * Computes the first half of the Fourier transform of real numbers, n / 2 + 1 elements (rounded down); the others are
 * their conjugates.
 *
 * @param x real; float16, bfloat16 and integers become float32
 * @returns complex64, or complex128 for float64
 *
 * @example
 * fft.rfft(tensor([1, 2, 3, 4])); // complex64 [10+0i, -2+2i, -2+0i]
 *
 * @throws {ShapeError} for an axis out of range. @throws {ArgumentError} for a length below 1.
 * @throws {DTypeError} if x is complex.
 */
export function rfft<D extends DType>(x: Tensor<D>, ...options: FftArguments): Tensor<ComplexFrom<D>>;
export function rfft(...values: unknown[]): Tensor {
  return transform("rfft", rfftParameters(values), { ...toSpectrum, inverse: false });
}
const rfftParameters = lineParameters("rfft");

/**
 * Computes the inverse of {@link rfft}: real numbers from the first half of their spectrum. The imaginary parts of the
 * first element, and of the last one if n is even, are ignored.
 *
 * @param x complex or real, with m elements along the axis; `n` is 2 (m − 1) by default
 * @returns float32, or float64 for float64 and complex128
 *
 * @example
 * fft.irfft(fft.rfft(tensor([1, 2, 3, 4]))); // float32 [1, 2, 3, 4]
 *
 * @throws {ShapeError} for an axis out of range. @throws {ArgumentError} for a length below 1.
 */
export function irfft<D extends DType>(x: Tensor<D>, ...options: FftArguments): Tensor<RealFrom<D>>;
export function irfft(...values: unknown[]): Tensor {
  return transform("irfft", irfftParameters(values), { ...toReal, inverse: true });
}
const irfftParameters = lineParameters("irfft");

/**
 * Computes the Fourier transform, which is real, of a signal whose second half is the conjugate of the first: x has the
 * first half, n / 2 + 1 elements.
 *
 * @param x complex or real, with m elements along the axis; `n` is 2 (m − 1) by default
 * @returns float32, or float64 for float64 and complex128
 *
 * @example
 * fft.hfft(tensor([1, 2, 3])); // float32 [8, -2, 0, -2]
 *
 * @throws {ShapeError} for an axis out of range. @throws {ArgumentError} for a length below 1.
 */
export function hfft<D extends DType>(x: Tensor<D>, ...options: FftArguments): Tensor<RealFrom<D>>;
export function hfft(...values: unknown[]): Tensor {
  return transform("hfft", hfftParameters(values), { ...toReal, inverse: false });
}
const hfftParameters = lineParameters("hfft");

/**
 * Computes the inverse of {@link hfft}: the first half of the inverse Fourier transform of real numbers.
 *
 * @param x real; float16, bfloat16 and integers become float32
 * @returns complex64, or complex128 for float64
 *
 * @example
 * fft.ihfft(tensor([4, 0, 0, 0])); // complex64 [1+0i, 1+0i, 1+0i]
 *
 * @throws {ShapeError} for an axis out of range. @throws {ArgumentError} for a length below 1.
 * @throws {DTypeError} if x is complex.
 */
export function ihfft<D extends DType>(x: Tensor<D>, ...options: FftArguments): Tensor<ComplexFrom<D>>;
export function ihfft(...values: unknown[]): Tensor {
  return transform("ihfft", ihfftParameters(values), { ...toSpectrum, inverse: true });
}
const ihfftParameters = lineParameters("ihfft");
