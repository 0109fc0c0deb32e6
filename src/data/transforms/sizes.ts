/** Transforms that resize, crop, pad and flip images. */
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { aNumber, choice, flag, listOf } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { type Given, type Kind, named, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { flip } from "../../ops/join/flip.ts";
import { type PadMode, pad as padded } from "../../ops/join/pad.ts";
import { interpolate } from "../../ops/picture/interpolate.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { narrow } from "../../ops/view/slice.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import {
  aRange,
  below,
  between,
  bothSides,
  computed,
  type Draw,
  sizeOf,
  someSize,
  type Transform,
  transform,
} from "./transform.ts";

/** How {@link resize} interpolates pixels. */
export type ResizeMode = "nearest" | "nearest-exact" | "bilinear" | "bicubic";

/** Options of {@link resize}. */
export interface ResizeOptions {
  /** How pixels are interpolated. Default `"bilinear"`. */
  mode?: ResizeMode | undefined;
  /** Applies an antialiasing filter with `"bilinear"` and `"bicubic"` if the result is smaller. Default true. */
  antialias?: boolean | undefined;
  /** The maximum length of the longer side, if `size` is one number. */
  maxSize?: number | undefined;
}

const resizing = {
  mode: named(choice("nearest", "nearest-exact", "bilinear", "bicubic"), "bilinear"),
  antialias: named(flag, true),
} as const;
type Resizing = { readonly mode: ResizeMode; readonly antialias: boolean };

/**
 * Returns a transform that resizes images, by {@link interpolate}.
 *
 * @param size [height, width]; or the length of the shorter side, with the longer side in proportion, rounded down
 *
 * @example
 * data.transforms.resize(224)(image); // uint8 [3, 480, 640] becomes [3, 224, 298]
 *
 * @throws {ArgumentError} `unusedOption` for maxSize with two sides.
 */
export function resize(size: number | readonly [height: number, width: number], options?: ResizeOptions): Transform;
export function resize(...values: unknown[]): Transform {
  const { size, maxSize, ...options } = resizeParameters(values);
  if (maxSize !== undefined && typeof size !== "number")
    throw new ArgumentError(
      "transforms.resize",
      "unusedOption",
      "maxSize requires a single number as size, got [height, width]",
    );
  return transform("transforms.resize", (image) =>
    resized("transforms.resize", image, typeof size === "number" ? shorterSide(image, size, maxSize) : size, options),
  );
}
const resizeParameters = parameters("transforms.resize", {
  size: operand(someSize),
  ...resizing,
  maxSize: named(aNumber(count)),
});

function shorterSide(image: Tensor, size: number, maxSize: number | undefined): [height: number, width: number] {
  const [height, width] = sizeOf(image);
  const [short, long] = [Math.min(height, width), Math.max(height, width)];
  let [newShort, newLong] = [size, Math.trunc((size * long) / short)];
  if (maxSize !== undefined && newLong > maxSize)
    [newShort, newLong] = [Math.max(1, Math.trunc((maxSize * newShort) / newLong)), maxSize];
  return height <= width ? [newShort, newLong] : [newLong, newShort];
}

function resized(
  operation: string,
  image: Tensor,
  size: readonly [height: number, width: number],
  { mode, antialias }: Resizing,
): Tensor {
  const [height, width] = sizeOf(image);
  if (height === size[0] && width === size[1]) return image;
  const isFiltered = antialias && (mode === "bilinear" || mode === "bicubic");
  return computed(operation, image, (x) => {
    const batch = x.rank === 4 ? x : reshape(x, [-1, ...x.shape.slice(-3)]);
    const result = interpolate(batch, { size: [...size], mode, ...(isFiltered && { antialias: true }) });
    return reshape(result, [...x.shape.slice(0, -2), ...size]);
  });
}

/** A crop of an image, as a view. */
const cropped = (image: Tensor, top: number, left: number, [height, width]: readonly [number, number]): Tensor =>
  narrow(narrow(image, -2, top, height), -1, left, width);

/** Rounds to the nearest integer, ties to even. */
const toEven = (value: number): number => (value % 1 === 0.5 ? 2 * Math.round(value / 2) : Math.round(value));

/**
 * Returns a transform that crops the center of images. Smaller images are padded with zeros.
 *
 * @example
 * data.transforms.centerCrop(224);
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function centerCrop(size: number | readonly [height: number, width: number]): Transform;
export function centerCrop(...values: unknown[]): Transform {
  const size = bothSides(centerCropParameters(values).size);
  return transform("transforms.centerCrop", (image) => {
    const missing = tupleOf(
      sizeOf(image).map((side, axis) => Math.max(size[axis] - side, 0)),
      2,
    );
    const [above, before] = tupleOf(
      missing.map((gap) => Math.floor(gap / 2)),
      2,
    );
    const [below, after] = [missing[0] - above, missing[1] - before];
    const whole = missing.some((gap) => gap > 0) ? padded(image, [before, after, above, below]) : image;
    const [top, left] = tupleOf(
      sizeOf(whole).map((side, axis) => toEven((side - size[axis]) / 2)),
      2,
    );
    return cropped(whole, top, left, size);
  });
}
const centerCropParameters = parameters("transforms.centerCrop", { size: operand(someSize) });

/** The width of a border in pixels: on all sides, or left, right, above and below. */
export type Border = number | readonly [left: number, right: number, above: number, below: number];

const border: Kind<[number, number, number, number]> = {
  expected: "a whole number of at least 0, or a list of four: left, right, above, below",
  parse(value, operation, name) {
    const isSize = (given: unknown): given is number => Number.isSafeInteger(given) && Number(given) >= 0;
    if (typeof value === "number") return isSize(value) ? [value, value, value, value] : undefined;
    const found = listOf(aNumber({ holds: isSize, expected: "a size" }), "").parse(value, operation, name);
    return found?.length === 4 ? tupleOf(found, 4) : undefined;
  },
};

/** Options of {@link pad}. */
export interface BorderOptions {
  /** How the border is filled, as in `pad` for tensors. Default `"constant"`. */
  mode?: PadMode | undefined;
  /** The value of the border with mode `"constant"`. Default 0. */
  value?: number | undefined;
}

const bordered = {
  mode: named(choice("constant", "reflect", "replicate", "circular"), "constant"),
  value: named(aNumber({ holds: Number.isFinite, expected: "a finite number" })),
} as const;

/**
 * Returns a transform that adds a border around images.
 *
 * @param padding the width in pixels: on all sides, or left, right, above and below
 *
 * @example
 * data.transforms.pad(4, { mode: "reflect" });
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function pad(padding: Border, options?: BorderOptions): Transform;
export function pad(...values: unknown[]): Transform {
  const { padding, mode, value } = padParameters(values);
  return transform("transforms.pad", (image) => withBorder(image, padding, mode, value));
}
const padParameters = parameters("transforms.pad", { padding: operand(border), ...bordered });

const withBorder = (image: Tensor, padding: readonly number[], mode: PadMode, value: number | undefined): Tensor =>
  padding.every((width) => width === 0)
    ? image
    : padded(image, padding, {
        mode,
        ...(mode === "constant" ? { value: value ?? 0 } : value !== undefined && { value }),
      });

/** Options of {@link randomCrop}. */
export interface RandomCropOptions extends BorderOptions {
  /** A border that is added before cropping. Default 0. */
  padding?: Border | undefined;
}

/**
 * Returns a transform that crops images at a random position.
 *
 * @example
 * data.transforms.randomCrop(32, { padding: 4 });
 *
 * @throws {ArgumentError} for an invalid argument. The transform: @throws {ShapeError} `tooSmall`.
 */
export function randomCrop(
  size: number | readonly [height: number, width: number],
  options?: RandomCropOptions,
): Transform;
export function randomCrop(...values: unknown[]): Transform {
  const { size: given, padding, mode, value } = randomCropParameters(values);
  const size = bothSides(given);
  return transform("transforms.randomCrop", (image, draw) => {
    const whole = withBorder(image, padding, mode, value);
    const [height, width] = sizeOf(whole);
    if (height < size[0] || width < size[1])
      throw new ShapeError(
        "transforms.randomCrop",
        "tooSmall",
        `expected an image of at least ${size.join(" x ")} including padding, got ${whole.describe()}`,
      );
    return cropped(whole, below(draw, height - size[0] + 1), below(draw, width - size[1] + 1), size);
  });
}
const randomCropParameters = parameters("transforms.randomCrop", {
  size: operand(someSize),
  padding: named(border, [0, 0, 0, 0]),
  ...bordered,
});

/** Options of {@link randomResizedCrop}. */
export interface RandomResizedCropOptions extends Omit<ResizeOptions, "maxSize"> {
  /** The range of the crop's area, as a fraction of the image. Default [0.08, 1]. */
  scale?: readonly [low: number, high: number] | undefined;
  /** The range of the crop's aspect ratio, width / height. Default [3/4, 4/3]. */
  ratio?: readonly [low: number, high: number] | undefined;
}

/**
 * Returns a transform that crops images with a random area, aspect ratio and position, and resizes the crop.
 *
 * Source: C. Szegedy et al., "Going Deeper with Convolutions", 2015; as in torchvision.
 *
 * @example
 * data.transforms.randomResizedCrop(224, { scale: [0.3, 1] });
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function randomResizedCrop(
  size: number | readonly [height: number, width: number],
  options?: RandomResizedCropOptions,
): Transform;
export function randomResizedCrop(...values: unknown[]): Transform {
  const { size, scale, ratio, ...options } = randomResizedCropParameters(values);
  return transform("transforms.randomResizedCrop", (image, draw) => {
    const { top, left, sides } = partOf(sizeOf(image), scale, ratio, draw);
    const part = cropped(image, top, left, sides);
    return resized("transforms.randomResizedCrop", part, bothSides(size), options);
  });
}
const positiveRange = aRange(
  (value) => value > 0 && value < Infinity,
  "a list of two numbers above 0, in ascending order",
);
const randomResizedCropParameters = parameters("transforms.randomResizedCrop", {
  size: operand(someSize),
  ...resizing,
  scale: named(positiveRange, [0.08, 1]),
  ratio: named(positiveRange, [3 / 4, 4 / 3]),
});

/** The number of random crops to try before falling back to the center. */
const ATTEMPTS = 10;

function partOf(
  [height, width]: readonly [number, number],
  scale: readonly [number, number],
  ratio: readonly [number, number],
  draw: Draw,
): { readonly top: number; readonly left: number; readonly sides: readonly [number, number] } {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const area = height * width * between(draw, scale);
    const aspect = Math.exp(between(draw, [Math.log(ratio[0]), Math.log(ratio[1])]));
    const sides = [toEven(Math.sqrt(area / aspect)), toEven(Math.sqrt(area * aspect))] as const;
    if (sides[0] < 1 || sides[1] < 1 || sides[0] > height || sides[1] > width) continue;
    return { top: below(draw, height - sides[0] + 1), left: below(draw, width - sides[1] + 1), sides };
  }
  const nearest = nearestRatio(height, width, ratio);
  return { top: Math.floor((height - nearest[0]) / 2), left: Math.floor((width - nearest[1]) / 2), sides: nearest };
}

/** The largest crop whose aspect ratio is within bounds. */
function nearestRatio(height: number, width: number, [low, high]: readonly [number, number]): [number, number] {
  if (width / height < low) return [Math.max(1, Math.min(height, toEven(width / low))), width];
  if (width / height > high) return [height, Math.max(1, Math.min(width, toEven(height * high)))];
  return [height, width];
}

/** Options of {@link randomHorizontalFlip} and {@link randomVerticalFlip}. */
export interface FlipOptions {
  /** The probability of a flip. Default 0.5. */
  p?: number | undefined;
}

const probability = aNumber({ holds: (value) => value >= 0 && value <= 1, expected: "a number from 0 to 1" });

/**
 * Returns a transform that mirrors images left to right with probability p.
 *
 * @example
 * data.transforms.randomHorizontalFlip(0.5);
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function randomHorizontalFlip(...options: Given<FlipOptions, ["p"]>): Transform;
export function randomHorizontalFlip(...values: unknown[]): Transform {
  return randomFlip("transforms.randomHorizontalFlip", horizontalParameters(values).p, -1);
}
const horizontalParameters = parameters("transforms.randomHorizontalFlip", { p: optional(probability, 0.5) });

/**
 * Returns a transform that mirrors images top to bottom with probability p.
 *
 * @example
 * data.transforms.randomVerticalFlip(0.5);
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function randomVerticalFlip(...options: Given<FlipOptions, ["p"]>): Transform;
export function randomVerticalFlip(...values: unknown[]): Transform {
  return randomFlip("transforms.randomVerticalFlip", verticalParameters(values).p, -2);
}
const verticalParameters = parameters("transforms.randomVerticalFlip", { p: optional(probability, 0.5) });

const randomFlip = (operation: string, p: number, axis: number): Transform =>
  transform(operation, (image, draw) => (draw() < p ? flip(image, axis) : image));
