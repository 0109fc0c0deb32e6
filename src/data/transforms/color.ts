/** Color transforms, with torchvision's formulas. Floats are expected from 0 to 1. */
import { ShapeError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { add, mul, sub } from "../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../ops/elementwise/clamp.ts";
import { eq } from "../../ops/elementwise/comparison.ts";
import { div, remainder } from "../../ops/elementwise/division.ts";
import { maximum, minimum } from "../../ops/elementwise/extrema.ts";
import { where } from "../../ops/elementwise/where.ts";
import { cat } from "../../ops/join/cat.ts";
import { mean } from "../../ops/reduction/mean.ts";
import { expand } from "../../ops/view/expand.ts";
import { narrow } from "../../ops/view/slice.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aSpread, below, between, computed, type Transform, transform, whiteOf } from "./transform.ts";

/** Red, green and blue, each with the channel axis kept. */
const channelsOf = (x: Tensor): [Tensor, Tensor, Tensor] => [0, 1, 2].map((at) => narrow(x, -3, at, 1)) as never;

/** Whether an image has one channel instead of three. @throws {ShapeError} `notAnImage` */
function isGray(operation: string, image: Tensor): boolean {
  const channels = image.shape.at(-3);
  if (channels === 1 || channels === 3) return channels === 1;
  throw new ShapeError(operation, "notAnImage", `expected an image of 1 or 3 channels, got ${image.describe()}`);
}

/** 0.2989 R + 0.587 G + 0.114 B, torchvision's weights; a gray image is returned unchanged. */
function grayOf(operation: string, x: Tensor): Tensor {
  if (isGray(operation, x)) return x;
  const [red, green, blue] = channelsOf(x);
  return add(add(mul(red, 0.2989), mul(green, 0.587)), mul(blue, 0.114));
}

/** factor · x + (1 − factor) · other, clamped to valid colors. */
const blended = (x: Tensor, other: Tensor | number, factor: number, white: number): Tensor =>
  clamp(add(mul(x, factor), mul(other, 1 - factor)), 0, white);

type Change = (operation: string, image: Tensor, amount: number) => Tensor;

const brightened: Change = (operation, image, factor) =>
  computed(operation, image, (x) => clamp(mul(x, factor), 0, whiteOf(image)));

const contrasted: Change = (operation, image, factor) =>
  computed(operation, image, (x) => {
    const middle = mean(grayOf(operation, x), { dim: [-3, -2, -1], keepdim: true });
    return blended(x, middle, factor, whiteOf(image));
  });

const saturated: Change = (operation, image, factor) =>
  isGray(operation, image)
    ? image
    : computed(operation, image, (x) => blended(x, grayOf(operation, x), factor, whiteOf(image)));

const shifted: Change = (operation, image, shift) =>
  isGray(operation, image) ? image : computed(operation, image, (x) => withHue(x, shift));

/**
 * Shifts the hue by a number of turns. A color of hue h, value v and chroma c (the largest channel minus the smallest)
 * has the channels v − c · clamp(min(k, 4 − k), 0, 1) with k = (n + 6 h) mod 6, where n is 5, 3 and 1.
 */
function withHue(x: Tensor, shift: number): Tensor {
  const [red, green, blue] = channelsOf(x);
  const value = maximum(maximum(red, green), blue);
  const chroma = sub(value, minimum(minimum(red, green), blue));
  const divisor = where(eq(chroma, 0), 1, chroma);
  const part = (a: Tensor, b: Tensor, offset: number) => add(div(sub(a, b), divisor), offset);
  const sextant = where(
    eq(value, red),
    part(green, blue, 0),
    where(eq(value, green), part(blue, red, 2), part(red, green, 4)),
  );
  const hue = add(sextant, 6 * shift);
  const channels = [5, 3, 1].map((n) => {
    const k = remainder(add(hue, n), 6);
    return sub(value, mul(chroma, clamp(minimum(k, sub(4, k)), 0, 1)));
  });
  return cat(channels, -3);
}

const factor = aNumber({ holds: (value) => value >= 0 && value < Infinity, expected: "a number of at least 0" });

/**
 * Returns a transform that multiplies colors by a factor.
 *
 * @param factor 0 gives black, 1 the original image
 *
 * @example
 * data.transforms.adjustBrightness(1.5)(tensor([[[0, 0.5]]])); // float32 [[[0, 0.75]]]
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function adjustBrightness(factor: number): Transform;
export function adjustBrightness(...values: unknown[]): Transform {
  const { factor: amount } = brightnessParameters(values);
  return transform("transforms.adjustBrightness", (image) => brightened("transforms.adjustBrightness", image, amount));
}
const brightnessParameters = parameters("transforms.adjustBrightness", { factor: operand(factor) });

/**
 * Returns a transform that changes the contrast: it moves colors away from the mean of the grayscale image, or toward
 * it.
 *
 * @param factor 0 gives the mean, 1 the original image
 *
 * @example
 * data.transforms.adjustContrast(0.5)(tensor([[[0, 1]]])); // float32 [[[0.25, 0.75]]]
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function adjustContrast(factor: number): Transform;
export function adjustContrast(...values: unknown[]): Transform {
  const { factor: amount } = contrastParameters(values);
  return transform("transforms.adjustContrast", (image) => contrasted("transforms.adjustContrast", image, amount));
}
const contrastParameters = parameters("transforms.adjustContrast", { factor: operand(factor) });

/**
 * Returns a transform that changes the saturation: it moves colors away from the grayscale image, or toward it. Gray
 * images do not change.
 *
 * @param factor 0 gives gray, 1 the original image
 *
 * @example
 * data.transforms.adjustSaturation(0)(image); // gray in all of its channels
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function adjustSaturation(factor: number): Transform;
export function adjustSaturation(...values: unknown[]): Transform {
  const { factor: amount } = saturationParameters(values);
  return transform("transforms.adjustSaturation", (image) => saturated("transforms.adjustSaturation", image, amount));
}
const saturationParameters = parameters("transforms.adjustSaturation", { factor: operand(factor) });

const turn = (value: number): boolean => value >= -0.5 && value <= 0.5;

/**
 * Returns a transform that shifts hues around the color wheel. Gray images do not change.
 *
 * @param shift in turns, from −0.5 to 0.5
 *
 * @example
 * data.transforms.adjustHue(1 / 3)(image); // red becomes green
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function adjustHue(shift: number): Transform;
export function adjustHue(...values: unknown[]): Transform {
  const { shift } = hueParameters(values);
  return transform("transforms.adjustHue", (image) => shifted("transforms.adjustHue", image, shift));
}
const hueParameters = parameters("transforms.adjustHue", {
  shift: operand(aNumber({ holds: turn, expected: "a number from -0.5 to 0.5" })),
});

/** Options of {@link grayscale}. */
export interface GrayscaleOptions {
  /** The number of channels of the result. Default 1. */
  channels?: 1 | 3 | undefined;
}

/**
 * Returns a transform that converts images to grayscale: 0.2989 R + 0.587 G + 0.114 B.
 *
 * @example
 * data.transforms.grayscale({ channels: 3 });
 *
 * @throws {ArgumentError} for an invalid argument. The transform: @throws {ShapeError} `notAnImage` unless the image
 * has 1 or 3 channels.
 */
export function grayscale(...options: Given<GrayscaleOptions, ["channels"]>): Transform;
export function grayscale(...values: unknown[]): Transform {
  const { channels } = grayscaleParameters(values);
  return transform("transforms.grayscale", (image) => {
    const gray = computed("transforms.grayscale", image, (x) => grayOf("transforms.grayscale", x));
    return channels === 1 ? gray : expand(gray, gray.shape.with(-3, 3));
  });
}
const grayscaleParameters = parameters("transforms.grayscale", {
  channels: optional(aNumber({ holds: (value) => value === 1 || value === 3, expected: "1 or 3" }), 1),
});

/** Options of {@link colorJitter}. */
export interface ColorJitterOptions {
  /** The range of brightness factors; a number means [max(0, 1 − brightness), 1 + brightness]. Default [1, 1]. */
  brightness?: number | readonly [low: number, high: number] | undefined;
  /** The range of contrast factors, like `brightness`. */
  contrast?: number | readonly [low: number, high: number] | undefined;
  /** The range of saturation factors, like `brightness`. */
  saturation?: number | readonly [low: number, high: number] | undefined;
  /** The range of hue shifts in turns; a number up to 0.5 means [−hue, hue]. Default [0, 0]. */
  hue?: number | readonly [low: number, high: number] | undefined;
}

/**
 * Returns a transform that changes brightness, contrast, saturation and hue at random, in a random order.
 *
 * @example
 * data.transforms.colorJitter({ brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1 });
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function colorJitter(options?: ColorJitterOptions): Transform;
export function colorJitter(...values: unknown[]): Transform {
  const ranges = jitterParameters(values);
  return transform("transforms.colorJitter", (image, draw) => {
    const changes = steps.flatMap(([name, change, still]) => {
      const amount = between(draw, ranges[name]);
      return amount === still ? [] : [(x: Tensor) => change("transforms.colorJitter", x, amount)];
    });
    let result = image;
    while (changes.length > 0) result = changes.splice(below(draw, changes.length), 1)[0](result);
    return result;
  });
}

const steps = [
  ["brightness", brightened, 1],
  ["contrast", contrasted, 1],
  ["saturation", saturated, 1],
  ["hue", shifted, 0],
] as const satisfies readonly (readonly [keyof ColorJitterOptions, Change, number])[];

const someFactors = aSpread(
  (value) => value >= 0 && value < Infinity,
  (most) => [Math.max(0, 1 - most), 1 + most],
  "a number of at least 0, or a list of two in ascending order",
);
const someShifts = aSpread(
  turn,
  (most) => [-most, most],
  "a number from 0 to 0.5, or a list of two from -0.5 to 0.5 in ascending order",
);
const jitterParameters = parameters("transforms.colorJitter", {
  brightness: named(someFactors, [1, 1]),
  contrast: named(someFactors, [1, 1]),
  saturation: named(someFactors, [1, 1]),
  hue: named(someShifts, [0, 0]),
});
