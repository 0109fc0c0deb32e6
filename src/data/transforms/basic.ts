/** Transforms of values, and lists of transforms. */
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aFunction, aNumber, choice, listOf } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { sub } from "../../ops/elementwise/arithmetic.ts";
import { div } from "../../ops/elementwise/division.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { ItemContext } from "../loader/items.ts";
import { computed, contextOf, imageOf, partOf, type Transform, transform } from "./transform.ts";

/**
 * Returns a transform that applies transforms in order. Each draws separate random numbers.
 *
 * @param transforms functions of an image and a context, which may be custom functions
 *
 * @example
 * const { compose, normalize, randomHorizontalFlip, toFloat } = data.transforms;
 * const change = compose([randomHorizontalFlip(), toFloat(), normalize([0.5], [0.25])]);
 * const set = new data.ImageFolder("pets", { transform: change });
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function compose(transforms: readonly ((image: Tensor, context?: ItemContext) => Tensor)[]): Transform;
export function compose(...values: unknown[]): Transform {
  const { transforms } = composeParameters(values);
  return (...given: unknown[]) => {
    const context = contextOf("transforms.compose", given[1]);
    return transforms.reduce(
      (image, each, at) => each(image, context && partOf(context, at)),
      imageOf("transforms.compose", given[0]),
    );
  };
}
const composeParameters = parameters("transforms.compose", {
  transforms: operand(listOf(aFunction<Transform>(), "a list of transforms: functions of an image and a context")),
});

/** Options of {@link toFloat}. */
export interface ToFloatOptions {
  /** The dtype of the result. Default `"float32"`. */
  dtype?: "float16" | "bfloat16" | "float32" | "float64" | undefined;
}

/**
 * Returns a transform that converts images to floats. Bytes from 0 to 255 become floats from 0 to 1; the values of
 * floats do not change.
 *
 * @example
 * data.transforms.toFloat()(tensor([[[0, 51, 255]]], { dtype: "uint8" })); // float32 [[[0, 0.2, 1]]]
 *
 * @throws {ArgumentError} for an unsupported dtype. The transform: @throws {DTypeError} `notAnImage`.
 */
export function toFloat(...options: Given<ToFloatOptions, ["dtype"]>): Transform;
export function toFloat(...values: unknown[]): Transform {
  const { dtype } = toFloatParameters(values);
  return transform("transforms.toFloat", (image) => {
    if (isFloat(image.dtype)) return toDType(image, dtype);
    if (image.dtype === "uint8") return toDType(div(image, 255), dtype);
    throw new DTypeError("transforms.toFloat", "notAnImage", `expected uint8 or floats, got ${image.describe()}`);
  });
}
const toFloatParameters = parameters("transforms.toFloat", {
  dtype: optional(choice("float16", "bfloat16", "float32", "float64"), "float32"),
});

const finiteNumbers = listOf(
  aNumber({ holds: Number.isFinite, expected: "a finite number" }),
  "a list of finite numbers, one for each channel",
);

/**
 * Returns a transform that normalizes each channel of float images: (x − mean) / std.
 *
 * @param mean one number per channel, or one for all channels
 *
 * @example
 * data.transforms.normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
 *
 * @throws {ArgumentError} `invalidOption` for a std of 0. The transform: @throws {ShapeError} `channelsDiffer`.
 * @throws {DTypeError} `notFloats`.
 */
export function normalize(mean: readonly number[], std: readonly number[]): Transform;
export function normalize(...values: unknown[]): Transform {
  const { mean, std } = normalizeParameters(values);
  if (std.includes(0) || std.length === 0 || mean.length === 0)
    throw new ArgumentError(
      "transforms.normalize",
      "invalidOption",
      `expected mean and std of at least one channel, and no std of 0, got ${JSON.stringify({ mean, std })}`,
    );
  return transform("transforms.normalize", (image) => {
    const channels = image.shape.at(-3);
    for (const [name, numbers] of Object.entries({ mean, std }))
      if (numbers.length !== 1 && numbers.length !== channels)
        throw new ShapeError(
          "transforms.normalize",
          "channelsDiffer",
          `expected ${name} to have one number or ${channels}, got ${numbers.length} for ${image.describe()}`,
        );
    if (!isFloat(image.dtype))
      throw new DTypeError(
        "transforms.normalize",
        "notFloats",
        `expected floats, got ${image.describe()}; convert with toFloat()`,
      );
    return computed("transforms.normalize", image, (x) => {
      const perChannel = (numbers: readonly number[]) =>
        tensor(Float64Array.from(numbers), { dtype: x.dtype, shape: [numbers.length, 1, 1] });
      return div(sub(x, perChannel(mean)), perChannel(std));
    });
  });
}
const normalizeParameters = parameters("transforms.normalize", {
  mean: operand(finiteNumbers),
  std: operand(finiteNumbers),
});
