/** Shared code of transforms: checks of images, random numbers, and the dtype in which they compute. */

import { underName } from "../../backend/dispatch.ts";
import { lastElement } from "../../core/collections.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber, listOf } from "../../core/kinds.ts";
import type { Kind } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { clamp } from "../../ops/elementwise/clamp.ts";
import { round } from "../../ops/elementwise/rounding.ts";
import { defaultGenerator } from "../../random/generator.ts";
import { uniform64 } from "../../random/normal.ts";
import { callKey, philox } from "../../random/philox.ts";
import { accumulationDType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { ItemContext } from "../loader/items.ts";

/**
 * Changes an image, [channels, height, width], or all images of a batch in the same way. Random changes depend on the
 * seed of the context, which data sets pass on. Without a context, they use the default generator, which `manualSeed`
 * seeds.
 */
export type Transform = (image: Tensor, context?: ItemContext) => Tensor;

/** Draws the next random number in [0, 1). */
export type Draw = () => number;

/** Counter words reserved for draws and for the seeds of parts; no other random numbers of a seed use them. */
const [DRAWS, PARTS] = [2, 3];

/** @internal Makes a transform from a function that may draw random numbers. */
export function transform(operation: string, body: (image: Tensor, draw: Draw) => Tensor): Transform {
  return (...values: unknown[]) => {
    const image = imageOf(operation, values[0]);
    const draw = drawOf(contextOf(operation, values[1]));
    return underName(operation, () => tidy(() => body(image, draw)));
  };
}

/** @internal Checks an image argument. */
export function imageOf(operation: string, value: unknown): Tensor {
  const image = aTensor.parse(value, operation, "image");
  if (image !== undefined && image.rank >= 3) return image;
  throw new ShapeError(
    operation,
    "notAnImage",
    `expected image to be [channels, height, width], optionally with batch axes before, got ` +
      (image === undefined ? describeValue(value) : image.describe()),
  );
}

/** @internal Checks a context argument. */
export function contextOf(operation: string, value: unknown): ItemContext | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "object" && value !== null && typeof Reflect.get(value, "seed") === "bigint")
    return value as ItemContext;
  throw new ArgumentError(
    operation,
    "invalidContext",
    `expected context to be { epoch, seed } with a bigint as its seed, got ${describeValue(value)}`,
  );
}

function drawOf(context: ItemContext | undefined): Draw {
  let drawn = 0;
  let key = context && callKey(BigInt.asUintN(64, context.seed), 0n);
  return () => {
    key ??= defaultGenerator.nextKey();
    const [high, low] = philox([drawn++, 0, 0, DRAWS], key);
    return uniform64(high, low);
  };
}

/** @internal Returns the context of a part of a transform, with a separate seed. */
export function partOf(context: ItemContext, part: number): ItemContext {
  const [high, low] = philox([part, 0, 0, PARTS], callKey(BigInt.asUintN(64, context.seed), 0n));
  return { ...context, seed: (BigInt(high) << 32n) | BigInt(low) };
}

/** @internal Draws a number in [low, high). */
export const between = (draw: Draw, [low, high]: readonly [number, number]): number => low + (high - low) * draw();

/** @internal Draws a whole number of at least 0 and below a count. */
export const below = (draw: Draw, count: number): number => Math.floor(draw() * count);

/** @internal Returns the largest color value: 255 for bytes, 1 for floats. */
export const whiteOf = (image: Tensor): number => (image.dtype === "uint8" ? 255 : 1);

/**
 * @internal Computes in float32, or in float64 for float64 images; the result for bytes is rounded to the nearest.
 *
 * @throws {DTypeError} `notAnImage` for other integers
 */
export function computed(operation: string, image: Tensor, body: (image: Tensor) => Tensor): Tensor {
  if (image.dtype !== "uint8" && !isFloat(image.dtype))
    throw new DTypeError(operation, "notAnImage", `expected an image of uint8 or floats, got ${image.describe()}`);
  const result = body(toDType(image, accumulationDType(image.dtype)));
  return toDType(image.dtype === "uint8" ? clamp(round(result), 0, 255) : result, image.dtype);
}

/** @internal Height and width. */
export const sizeOf = ({ shape }: Tensor): [height: number, width: number] => [shape.at(-2)!, lastElement(shape)];

const aSide = (value: number): boolean => Number.isSafeInteger(value) && value > 0;

/** @internal Accepts one number, or height and width. */
export const someSize: Kind<number | [height: number, width: number]> = {
  expected: "a whole number above 0, or [height, width]",
  parse(value, operation, name) {
    if (typeof value === "number") return aSide(value) ? value : undefined;
    return twoOf(aNumber({ holds: aSide, expected: "a side" })).parse(value, operation, name);
  },
};

/** @internal */
export const bothSides = (size: number | readonly [number, number]): readonly [height: number, width: number] =>
  typeof size === "number" ? [size, size] : size;

/** @internal Accepts a list of two values of a kind. */
export const twoOf = (kind: Kind<number>): Kind<[number, number]> => ({
  expected: `a list of two numbers`,
  parse(value, operation, name) {
    const found = listOf(kind, "").parse(value, operation, name);
    return found?.length === 2 ? tupleOf(found, 2) : undefined;
  },
});

const isRising = ([low, high]: readonly [number, number]): boolean => low <= high;

/** @internal Accepts two numbers, of which the first is not above the second. */
export const aRange = (holds: (value: number) => boolean, expected: string): Kind<[low: number, high: number]> => ({
  expected,
  parse(value, operation, name) {
    const found = twoOf(aNumber({ holds, expected: "a number" })).parse(value, operation, name);
    return found && isRising(found) ? found : undefined;
  },
});

/** @internal Accepts a range, or a number that means a range around a center. */
export const aSpread = (
  holds: (value: number) => boolean,
  around: (value: number) => [low: number, high: number],
  expected: string,
): Kind<[low: number, high: number]> => ({
  expected,
  parse(value, operation, name) {
    if (typeof value !== "number") return aRange(holds, expected).parse(value, operation, name);
    return value >= 0 && around(value).every(holds) ? around(value) : undefined;
  },
});
