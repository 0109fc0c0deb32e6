/** Transforms by affine maps: rotations, shifts, scales and shears. */
import { ArgumentError } from "../../core/errors.ts";
import { aNumber, choice, listOf } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters } from "../../core/parameters.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { add, sub } from "../../ops/elementwise/arithmetic.ts";
import { affineGrid, gridSample } from "../../ops/picture/grid_sample.ts";
import { expand } from "../../ops/view/expand.ts";
import { reshape } from "../../ops/view/reshape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aRange, aSpread, between, computed, sizeOf, type Transform, transform, twoOf } from "./transform.ts";

/** Sampling options of {@link rotate} and {@link affine}. */
export interface SamplingOptions {
  /** How pixels are interpolated. Default `"nearest"`, as in torchvision. */
  mode?: "nearest" | "bilinear" | undefined;
  /** The value of pixels outside the image. Default 0. */
  fill?: number | undefined;
}

const finite = aNumber({ holds: Number.isFinite, expected: "a finite number" });
const sampling = { mode: named(choice("nearest", "bilinear"), "nearest"), fill: named(finite, 0) } as const;
type Sampling = { readonly mode: "nearest" | "bilinear"; readonly fill: number };

/** A rotation around the center, with a shift, a scale and a shear. */
interface Motion {
  /** Degrees, clockwise. */
  readonly angle: number;
  /** Pixels to the right and down. */
  readonly translate: readonly [x: number, y: number];
  readonly scale: number;
  /** Degrees. */
  readonly shear: readonly [x: number, y: number];
}

const still: Motion = { angle: 0, translate: [0, 0], scale: 1, shear: [0, 0] };
const radians = (degrees: number): number => (degrees * Math.PI) / 180;

type Row = readonly [number, number, number];

/**
 * Maps a pixel of the result to its source, in pixels from the center: the inverse of T · R · Shear · Scale, as in
 * torchvision's `_get_inverse_affine_matrix`.
 */
function inverseOf({ angle, translate: [tx, ty], scale, shear }: Motion): [Row, Row] {
  const [rotation, sx, sy] = [radians(angle), radians(shear[0]), radians(shear[1])];
  const a = Math.cos(rotation - sy) / Math.cos(sy);
  const b = (-Math.cos(rotation - sy) * Math.tan(sx)) / Math.cos(sy) - Math.sin(rotation);
  const c = Math.sin(rotation - sy) / Math.cos(sy);
  const d = (-Math.sin(rotation - sy) * Math.tan(sx)) / Math.cos(sy) + Math.cos(rotation);
  const row = (x: number, y: number): Row => [x / scale, y / scale, -(x * tx + y * ty) / scale];
  return [row(d, -b), row(-c, a)];
}

/** Applies a motion to an image. {@link affineGrid} uses coordinates from −1 to 1. */
function moved(operation: string, image: Tensor, motion: Motion, { mode, fill }: Sampling): Tensor {
  const [height, width] = sizeOf(image);
  const [[xx, xy, x0], [yx, yy, y0]] = inverseOf(motion);
  const theta = [xx, (xy * height) / width, (2 * x0) / width, (yx * width) / height, yy, (2 * y0) / height];
  return computed(operation, image, (x) => {
    const batch = reshape(x, [-1, ...x.shape.slice(-3)]);
    const matrix = tensor(Float64Array.from(theta), { dtype: x.dtype, shape: [1, 2, 3] });
    const grid = affineGrid(matrix, [1, 1, height, width]);
    const grids = expand(grid, [batch.shape[0], height, width, 2]);
    // Sampling gives zeros outside the image, so the fill is subtracted before and added after it.
    const sampled = gridSample(fill === 0 ? batch : sub(batch, fill), grids, { mode });
    return reshape(fill === 0 ? sampled : add(sampled, fill), x.shape);
  });
}

/**
 * Returns a transform that rotates images around their center. The size does not change, so corners are cut off.
 *
 * @param angle in degrees, counterclockwise
 *
 * @example
 * data.transforms.rotate(30, { mode: "bilinear" });
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function rotate(angle: number, options?: SamplingOptions): Transform;
export function rotate(...values: unknown[]): Transform {
  const { angle, ...options } = rotateParameters(values);
  return transform("transforms.rotate", (image) =>
    moved("transforms.rotate", image, { ...still, angle: -angle }, options),
  );
}
const rotateParameters = parameters("transforms.rotate", { angle: operand(finite), ...sampling });

/** Options of {@link affine}. */
export interface AffineOptions extends SamplingOptions {
  /** The rotation in degrees, clockwise. Default 0. */
  angle?: number | undefined;
  /** The shift in pixels, to the right and down. Default [0, 0]. */
  translate?: readonly [x: number, y: number] | undefined;
  /** The factor by which the image grows. Default 1. */
  scale?: number | undefined;
  /** The shear in degrees along x and y. Default [0, 0]. */
  shear?: readonly [x: number, y: number] | undefined;
}

/**
 * Returns a transform that scales, shears, rotates (around the center) and shifts images, in this order.
 *
 * @example
 * data.transforms.affine({ angle: 10, translate: [3, 0], scale: 1.2 });
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function affine(options?: AffineOptions): Transform;
export function affine(...values: unknown[]): Transform {
  const { mode, fill, ...motion } = affineParameters(values);
  checkShears("transforms.affine", motion.shear);
  return transform("transforms.affine", (image) => moved("transforms.affine", image, motion, { mode, fill }));
}
const scale = aNumber({ holds: (value) => value > 0 && value < Infinity, expected: "a number above 0" });
const affineParameters = parameters("transforms.affine", {
  angle: named(finite, 0),
  translate: named(twoOf(finite), [0, 0]),
  scale: named(scale, 1),
  shear: named(twoOf(finite), [0, 0]),
  ...sampling,
});

/** A shear of a right angle would collapse the image. */
function checkShears(operation: string, degrees: readonly number[]): void {
  const wrong = degrees.find((angle) => Math.abs(Math.cos(radians(angle))) < 1e-6);
  if (wrong === undefined) return;
  throw new ArgumentError(operation, "invalidOption", `expected a shear other than a right angle, got ${wrong}`);
}

const someDegrees = aSpread(
  Number.isFinite,
  (most) => [-most, most],
  "a number of degrees of at least 0, or a list of two in ascending order",
);

/**
 * Returns a transform that rotates images around their center by a random angle.
 *
 * @param degrees the range of the angle, counterclockwise; a number means [−degrees, degrees]
 *
 * @example
 * data.transforms.randomRotation(15, { mode: "bilinear" });
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function randomRotation(
  degrees: number | readonly [low: number, high: number],
  options?: SamplingOptions,
): Transform;
export function randomRotation(...values: unknown[]): Transform {
  const { degrees, ...options } = randomRotationParameters(values);
  return transform("transforms.randomRotation", (image, draw) =>
    moved("transforms.randomRotation", image, { ...still, angle: -between(draw, degrees) }, options),
  );
}
const randomRotationParameters = parameters("transforms.randomRotation", {
  degrees: operand(someDegrees),
  ...sampling,
});

/** Options of {@link randomAffine}. */
export interface RandomAffineOptions extends SamplingOptions {
  /** The maximum shift, as fractions of width and height. Default [0, 0]. */
  translate?: readonly [x: number, y: number] | undefined;
  /** The range of scales. Default [1, 1]. */
  scale?: readonly [low: number, high: number] | undefined;
  /** The range of degrees along x, and along y; a number means [−shear, shear] along x. Default 0. */
  shear?: number | readonly [low: number, high: number] | readonly [number, number, number, number] | undefined;
}

type Shears = [x: [number, number], y: [number, number]];

const someShears: Kind<Shears> = {
  expected: "a number of degrees, or a list of two or four, each pair in ascending order",
  parse(value, operation, name) {
    const alongX = someDegrees.parse(value, operation, name);
    if (alongX) return [alongX, [0, 0]];
    const four = listOf(finite, "").parse(value, operation, name);
    if (four?.length !== 4 || four[0] > four[1] || four[2] > four[3]) return undefined;
    return [four.slice(0, 2), four.slice(2)] as Shears;
  },
};

/**
 * Returns a transform that rotates, shifts, scales and shears images at random.
 *
 * @param degrees the range of the angle, clockwise; a number means [−degrees, degrees]
 *
 * @example
 * data.transforms.randomAffine(10, { translate: [0.1, 0.1], scale: [0.9, 1.1], mode: "bilinear" });
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function randomAffine(
  degrees: number | readonly [low: number, high: number],
  options?: RandomAffineOptions,
): Transform;
export function randomAffine(...values: unknown[]): Transform {
  const { degrees, translate, scale, shear, ...options } = randomAffineParameters(values);
  checkShears("transforms.randomAffine", shear.flat());
  return transform("transforms.randomAffine", (image, draw) => {
    const [height, width] = sizeOf(image);
    const shift = (most: number) => Math.round(between(draw, [-most, most]));
    const motion: Motion = {
      angle: between(draw, degrees),
      translate: [shift(translate[0] * width), shift(translate[1] * height)],
      scale: between(draw, scale),
      shear: [between(draw, shear[0]), between(draw, shear[1])],
    };
    return moved("transforms.randomAffine", image, motion, options);
  });
}
const share = aNumber({ holds: (value) => value >= 0 && value <= 1, expected: "a fraction from 0 to 1" });
const randomAffineParameters = parameters("transforms.randomAffine", {
  degrees: operand(someDegrees),
  translate: named({ ...twoOf(share), expected: "a list of two fractions from 0 to 1" }, [0, 0]),
  scale: named(
    aRange((value) => value > 0 && value < Infinity, "a list of two numbers above 0, in ascending order"),
    [1, 1],
  ),
  shear: named(someShears, [
    [0, 0],
    [0, 0],
  ]),
  ...sampling,
});
