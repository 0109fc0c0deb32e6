/** Resizing of signals, images and volumes. */
import { checkElements, underName } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { choice, flag } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { checkShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { alongAxes, type PerAxis, perAxis } from "../convolution/geometry.ts";
import { toDType } from "../copy/cast.ts";
import { clone } from "../copy/copy.ts";
import { tensor } from "../creation/tensor.ts";
import { add, mul } from "../elementwise/arithmetic.ts";
import { indexSelectAlong } from "../indexing/adjoint.ts";
import { adaptiveAvgPool1d, adaptiveAvgPool2d, adaptiveAvgPool3d } from "../pooling/average_pool.ts";
import { canResample, resample } from "../pooling/resample.ts";
import { resampledBytes } from "./resample_bytes.ts";
import { type Axis, mapOf, type Taps, tapsOf } from "./taps.ts";

/** Interpolation modes of {@link interpolate}. */
export type InterpolationMode = "nearest" | "nearest-exact" | "linear" | "bilinear" | "trilinear" | "bicubic" | "area";

/** Options of {@link interpolate}; either `size` or `scaleFactor` is required. */
export interface InterpolateOptions {
  /** The size of the result, for all axes or for each. */
  size?: PerAxis | undefined;
  /** The factor by which sizes are multiplied, rounding down, for all axes or for each. */
  scaleFactor?: PerAxis | undefined;
  /** The interpolation mode. Default `"nearest"`. */
  mode?: InterpolationMode | undefined;
  /** Whether to align the centers of the first and last elements, instead of their outer edges. Default: false. */
  alignCorners?: boolean | undefined;
  /** Whether to compute positions from the sizes instead of the factor. Default false. */
  recomputeScaleFactor?: boolean | undefined;
  /** Whether to apply an antialiasing filter when downsampling with `"bilinear"` or `"bicubic"`. Default false. */
  antialias?: boolean | undefined;
}

/**
 * Resizes a signal, image or volume by nearest, linear, cubic or area interpolation. Coordinates and rounding are
 * PyTorch's. Sums are in float32, or in float64 for float64. Images of uint8 are summed in integers and rounded after
 * each axis.
 *
 * @param x [batch, channels, length], […, height, width] or […, depth, height, width]
 * @param options `mode` is `"nearest"`, `"nearest-exact"` or `"area"`, or depends on the number of axes: `"linear"` for
 * signals, `"bilinear"` or `"bicubic"` for images, `"trilinear"` for volumes
 *
 * @example
 * interpolate(tensor([[[1, 2]]]), { scaleFactor: 2 }); // float32 [[[1, 1, 2, 2]]]
 * interpolate(tensor([[[1, 3]]]), { size: 3, mode: "linear" }); // float32 [[[1, 2, 3]]]
 *
 * @throws {ShapeError} if x has the wrong rank or an empty axis.
 * @throws {DTypeError} for integers, except with a nearest mode, or uint8 with `"bilinear"` and `"bicubic"`.
 * @throws {ArgumentError} for a mode that does not match the axes, both or neither of `size` and `scaleFactor`, or
 * options that the mode does not support.
 */
export function interpolate<D extends DType>(
  x: Tensor<D>,
  ...options: Given<
    InterpolateOptions,
    ["size", "scaleFactor", "mode", "alignCorners", "recomputeScaleFactor", "antialias"]
  >
): Tensor<D>;
export function interpolate(...values: unknown[]): Tensor {
  const call = interpolateParameters(values);
  const { x, mode } = call;
  checkMode(call);
  const axes = axesOf(call);
  checkShape("interpolate", [...x.shape.slice(0, 2), ...axes.map(({ output }) => output)]);
  checkElements("interpolate", [x]);
  return underName("interpolate", () =>
    tidy(() => {
      if (mode === "area")
        return areas(
          x,
          axes.map(({ output }) => output),
        );
      const isNearest = mode === "nearest" || mode === "nearest-exact";
      const resampling = mode === "bicubic" ? "cubic" : isNearest ? mode : "linear";
      if (isFloat(x.dtype) && canResample() && x.size > 0) {
        const maps = axes.map((axis) => mapOf(resampling, axis, call.antialias));
        return resample("interpolate", x, maps);
      }
      const isBytes = x.dtype === "uint8" && !isNearest;
      const ways = axes.map((axis, at) => [at + 2, tapsOf(resampling, axis, call.antialias)] as const);
      const along = isBytes ? resampledBytes : resampled;
      const order = isBytes ? ways.toReversed() : ways;
      const wide = isNearest || isBytes ? x : toDType(x, accumulationDType(x.dtype));
      const result = order.reduce((partial, [axis, taps]) => (taps ? along(partial, axis, taps) : partial), wide);
      return result === x ? clone(x) : toDType(result, x.dtype);
    }),
  );
}
const interpolateParameters = parameters("interpolate", {
  x: operand(aTensor),
  size: optional(perAxis),
  scaleFactor: optional(perAxis),
  mode: optional(choice("nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"), "nearest"),
  alignCorners: optional(flag),
  recomputeScaleFactor: optional(flag, false),
  antialias: optional(flag, false),
});
type Call = ReturnType<typeof interpolateParameters>;

/** The number of axes that a mode requires. */
const axesByMode: Readonly<Partial<Record<InterpolationMode, number>>> = {
  linear: 1,
  bilinear: 2,
  bicubic: 2,
  trilinear: 3,
};

function checkMode({ x, mode, alignCorners, antialias }: Call): void {
  const rank = x.rank - 2;
  if (rank < 1 || rank > 3)
    throw new ShapeError(
      "interpolate",
      "wrongRank",
      `expected [batch, channels, …] followed by one to three axes, got ${x.describe()}`,
    );
  const needed = axesByMode[mode];
  if (needed !== undefined && needed !== rank)
    throw new ArgumentError(
      "interpolate",
      "invalidMode",
      `expected mode "${mode}" with x of ${needed + 2} axes, got ${x.describe()}`,
    );
  if (needed === undefined && alignCorners !== undefined)
    throw new ArgumentError(
      "interpolate",
      "invalidMode",
      `expected alignCorners with a linear or cubic mode, got "${mode}"`,
    );
  if (antialias && mode !== "bilinear" && mode !== "bicubic")
    throw new ArgumentError(
      "interpolate",
      "invalidMode",
      `expected antialias with mode "bilinear" or "bicubic", got "${mode}"`,
    );
  const takesBytes = mode === "bilinear" || mode === "bicubic";
  if (!isFloat(x.dtype) && !mode.startsWith("nearest") && !(takesBytes && x.dtype === "uint8"))
    throw new DTypeError(
      "interpolate",
      "notAFloat",
      `expected floats${takesBytes ? " or uint8" : ""} for mode "${mode}", got ${x.describe()}`,
    );
}

function axesOf({ x, size, scaleFactor, alignCorners, recomputeScaleFactor }: Call): Axis[] {
  const sizes = x.shape.slice(2);
  if ((size === undefined) === (scaleFactor === undefined))
    throw new ArgumentError(
      "interpolate",
      "invalidSize",
      `expected either size or scaleFactor, got ${size === undefined ? "none" : "both"}`,
    );
  if (sizes.includes(0))
    throw new ShapeError("interpolate", "noElements", `expected elements along all axes, got ${x.describe()}`);
  const factors = scaleFactor === undefined ? undefined : factorsOf(scaleFactor, sizes.length);
  const outputs = factors
    ? alongAxes(
        "interpolate",
        "scaleFactor times the size",
        sizes.map((each, at) => Math.floor(each * factors[at])),
        sizes.length,
        1,
      )
    : alongAxes("interpolate", "size", size!, sizes.length, 1);
  return sizes.map((each, at) => ({
    size: each,
    output: outputs[at],
    factor: recomputeScaleFactor ? undefined : factors?.[at],
    alignCorners: alignCorners ?? false,
  }));
}

function factorsOf(factor: PerAxis, rank: number): number[] {
  const list = typeof factor === "number" ? new Array<number>(rank).fill(factor) : [...factor];
  if (list.length !== rank || !list.every((each) => each > 0 && each < Infinity))
    throw new ArgumentError(
      "interpolate",
      "invalidSize",
      `expected scaleFactor to be a number above 0, or one for each of ${rank} axes, got ${list.join(", ")}`,
    );
  return list;
}

function resampled(x: Tensor, axis: number, { places, weights }: Taps): Tensor {
  const taken = (tap: number): Tensor => indexSelectAlong(x, tensor(places[tap]), axis, "interpolate");
  if (!weights) return taken(0);
  const along = x.shape.map((_, at) => (at === axis ? places[0].length : 1));
  return weights
    .map((values, tap) => mul(taken(tap), tensor(values, { shape: along, dtype: x.dtype })))
    .reduce((sum, term) => add(sum, term));
}

function areas(x: Tensor, outputs: readonly number[]): Tensor {
  if (outputs.length === 1) return adaptiveAvgPool1d(x, outputs);
  return outputs.length === 2 ? adaptiveAvgPool2d(x, outputs) : adaptiveAvgPool3d(x, outputs);
}
