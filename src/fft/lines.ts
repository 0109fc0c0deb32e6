/** Transforms of tensors along one axis, with checked arguments. */
import { hasOnlyCpu } from "../backend/fuses.ts";
import { ArgumentError, DTypeError, ShapeError } from "../core/errors.ts";
import { axes, axis as axisKind, choice, isListed, listOf, someNumber } from "../core/kinds.ts";
import { type Kind, operand, optional, parameters } from "../core/parameters.ts";
import { viewAsComplex, viewAsReal } from "../ops/complex/parts.ts";
import { toDType } from "../ops/copy/cast.ts";
import { embed } from "../ops/view/embed.ts";
import { movedim } from "../ops/view/permute.ts";
import { axisOf, narrow } from "../ops/view/slice.ts";
import { accumulationDType, complexDType, isComplex } from "../tensor/dtype.ts";
import { aTensor } from "../tensor/kinds.ts";
import { MAX_RANK } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Direction } from "./primitive.ts";
import { realToSpectrum, spectrumToReal, transformAxes, transformPairs } from "./transform.ts";

/**
 * Which direction of a transform of n elements is scaled: `"backward"` scales the inverse by 1 / n, `"forward"` the
 * forward transform by 1 / n, and `"ortho"` both by 1 / √n.
 */
export type FftNorm = "backward" | "ortho" | "forward";
export const fftNorm: Kind<FftNorm> = choice("backward", "ortho", "forward");

/** Options of transforms of one axis. */
export interface FftOptions {
  /** The length of the axis: it is truncated, or padded with zeros at the end. Default: the length in x. */
  n?: number | undefined;
  /** The axis. Default −1, the last. */
  dim?: number | undefined;
  /** The normalization. Default `"backward"`. */
  norm?: FftNorm | undefined;
}

/** Options of transforms of several axes. */
export interface FftManyOptions {
  /**
   * The length of each axis: it is truncated, or padded with zeros at the end; −1 keeps the length. Default: the
   * lengths in x.
   */
  s?: readonly number[] | undefined;
  /** The axes. Default: the last ones, as many as `s` has lengths; all without `s`. */
  dim?: number | readonly number[] | undefined;
  /** The normalization. Default `"backward"`. */
  norm?: FftNorm | undefined;
}

export const lineParameters = (operation: string) =>
  parameters(operation, {
    x: operand(aTensor),
    n: optional(someNumber),
    dim: optional(axisKind, -1),
    norm: optional(fftNorm, "backward"),
  });

const lengths: Kind<number[]> = listOf(someNumber, "a list of lengths");

export const manyParameters = (operation: string, dim?: readonly number[]) =>
  parameters(operation, {
    x: operand(aTensor),
    s: optional(lengths),
    dim: optional<number | readonly number[]>(axes, dim as readonly number[]),
    norm: optional(fftNorm, "backward"),
  });

/** A transform of one axis of a complex or real tensor. */
export interface Line {
  readonly operation: string;
  readonly axis: number;
  /** The number of elements that are summed, or of real results. */
  readonly length: number;
  readonly inverse: boolean;
  readonly scale: number;
}

/** Returns the factor of a transform of `length` elements. */
export function scaleOf(norm: FftNorm, length: number, inverse: boolean): number {
  if (norm === "ortho") return 1 / Math.sqrt(length);
  return (norm === "forward") === inverse ? 1 : 1 / length;
}

/** Checks a length. @throws {ArgumentError} `invalidLength` if a length is not a whole number of at least 1 */
export function checkLength(operation: string, length: number): number {
  if (Number.isSafeInteger(length) && length >= 1) return length;
  throw new ArgumentError(
    operation,
    "invalidLength",
    `expected a length of at least 1 along each axis, got ${length}; pass n (or s) to pad`,
  );
}

/** Returns the axis. @throws {ShapeError} if the tensor does not have it */
export const lineAxis = (operation: string, x: Tensor, dim: number): number => axisOf(operation, x, dim);

/** Returns x with complex dtype: complex128 for float64, complex64 for other real dtypes. */
export const asComplex = (x: Tensor): Tensor => (isComplex(x.dtype) ? x : toDType(x, complexDType(x.dtype)));

/** Returns x as float32 or float64. @throws {DTypeError} `notReal` if it is complex */
export function asReal(operation: string, x: Tensor): Tensor {
  if (isComplex(x.dtype))
    throw new DTypeError(operation, "notReal", `expected real numbers, got ${x.describe()}; use fft, or real(x)`);
  return toDType(x, accumulationDType(x.dtype));
}

/** Truncates an axis to a length, or pads it with zeros. */
export function resized(x: Tensor, axis: number, length: number): Tensor {
  const size = x.shape[axis];
  if (size === length) return x;
  if (size > length) return narrow(x, axis, 0, length);
  const shape = x.shape.map((each, at) => (at === axis ? length : each));
  return embed(x, shape, (whole) => narrow(whole, axis, 0, size));
}

/** Transforms a complex or real tensor along an axis. */
export const complexLine = (x: Tensor, line: Line): Tensor => complexLines(x, [line]);

/** Transforms a complex or real tensor along axes, in one direction. */
export function complexLines(x: Tensor, lines: readonly Line[]): Tensor {
  if (
    lines.length === 0 ||
    x.rank === MAX_RANK ||
    !hasOnlyCpu(x) ||
    lines.some(({ axis, length }) => x.shape[axis] !== length)
  )
    return lines.reduce(separateLine, asComplex(x));
  const isReal = !isComplex(x.dtype);
  const given = isReal ? toDType(x, accumulationDType(x.dtype)) : viewAsReal(x);
  const [{ operation, inverse }] = lines as readonly [Line, ...Line[]];
  const scale = lines.reduce((product, line) => product * line.scale, 1);
  return viewAsComplex(
    transformAxes(operation, given, { axes: lines.map(({ axis }) => axis), isReal, inverse, scale }),
  );
}

function separateLine(x: Tensor, { operation, axis, length, inverse, scale }: Line): Tensor {
  const pairs = resized(viewAsReal(x), axis, length);
  return viewAsComplex(transformPairs(operation, pairs, { axis, inverse, scale }));
}

/** Moves an axis. Usually it is in place: the transform is along the last axis. */
const moved = (x: Tensor, from: number, to: number): Tensor => (from === to ? x : movedim(x, from, to));

/** Transforms a real tensor to the first half of its spectrum along an axis. */
export function spectrumLine(x: Tensor, { operation, axis, length, ...direction }: Line & Direction): Tensor {
  const last = x.rank - 1;
  const rows = moved(resized(x, axis, length), axis, last);
  return moved(viewAsComplex(realToSpectrum(operation, rows, directionOf(direction))), last, axis);
}

/** Transforms the first half of a spectrum along an axis to real numbers. */
export function realLine(x: Tensor, { operation, axis, length, ...direction }: Line & Direction): Tensor {
  const last = x.rank - 1;
  const half = moved(resized(viewAsReal(x), axis, Math.floor(length / 2) + 1), axis, last);
  return moved(spectrumToReal(operation, half, { ...directionOf(direction), length }), last, axis);
}

const directionOf = ({ inverse, scale }: Direction): Direction => ({ inverse, scale });

/** Returns the axes of a transform of several axes with their lengths, in the caller's order. */
export function linesOf(
  operation: string,
  x: Tensor,
  s: readonly number[] | undefined,
  dim: number | readonly number[] | undefined,
): { axis: number; length: number }[] {
  const given = dim === undefined ? undefined : isListed(dim) ? dim : [dim];
  const count = s?.length ?? x.rank;
  if (given === undefined && count > x.rank)
    throw new ShapeError(operation, "wrongRank", `expected at least ${count} axes for s, got ${x.describe()}`);
  const chosen = (given ?? Array.from({ length: count }, (_, at) => at - count)).map((each) =>
    axisOf(operation, x, each),
  );
  if (s && s.length !== chosen.length)
    throw new ArgumentError(
      operation,
      "invalidLength",
      `expected a length for each of ${chosen.length} axes, got [${s}]`,
    );
  if (new Set(chosen).size !== chosen.length)
    throw new ShapeError(operation, "axisTwice", `dim [${chosen.join(", ")}] names an axis twice`);
  return chosen.map((axis, at) => {
    const length = s === undefined || s[at] === -1 ? x.shape[axis] : s[at];
    return { axis, length: checkLength(operation, length) };
  });
}
