/** Rearrangement of channels into pixels of a larger image, and back. */
import { ShapeError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { permute } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";

/**
 * Rearranges channels into a larger image: each r × r block of pixels comes from r² channels.
 *
 * Source: W. Shi et al., "Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel Convolutional
 * Neural Network", 2016.
 *
 * @param x […, channels · r², height, width]
 * @param upscaleFactor r
 * @returns […, channels, height · r, width · r]
 *
 * @example
 * pixelShuffle(tensor([[[1]], [[2]], [[3]], [[4]]]), 2); // float32 [[[1, 2], [3, 4]]]
 *
 * @throws {ShapeError} for fewer than three axes, or a number of channels that is not divisible by r².
 * @throws {ArgumentError} for a factor that is not a whole number of at least 1.
 */
export function pixelShuffle<D extends DType>(x: Tensor<D>, upscaleFactor: number): Tensor<D>;
export function pixelShuffle(...values: unknown[]): Tensor {
  const { x, upscaleFactor: r } = pixelShuffleParameters(values);
  const [channels, height, width] = picture("pixelShuffle", x);
  if (channels % (r * r) !== 0)
    throw new ShapeError(
      "pixelShuffle",
      "shapesDiffer",
      `expected a number of channels divisible by upscaleFactor² = ${r * r}, got ${x.describe()}`,
    );
  const lead = x.shape.slice(0, -3);
  const outputChannels = channels / (r * r);
  return tidy(() => {
    const parts = reshape(x, [elementCount(lead), outputChannels, r, r, height, width]);
    return reshape(permute(parts, [0, 1, 4, 2, 5, 3]), [...lead, outputChannels, height * r, width * r]);
  });
}
const aFactor = aNumber(count);
const pixelShuffleParameters = parameters("pixelShuffle", { x: operand(aTensor), upscaleFactor: required(aFactor) });

/**
 * Rearranges each r × r block of pixels into r² channels: the inverse of {@link pixelShuffle}.
 *
 * @param x […, channels, height · r, width · r]
 * @param downscaleFactor r
 * @returns […, channels · r², height, width]
 *
 * @example
 * pixelUnshuffle(tensor([[[1, 2], [3, 4]]]), 2); // float32 [[[1]], [[2]], [[3]], [[4]]]
 *
 * @throws {ShapeError} for fewer than three axes, or sizes that are not divisible by r.
 * @throws {ArgumentError} for a factor that is not a whole number of at least 1.
 */
export function pixelUnshuffle<D extends DType>(x: Tensor<D>, downscaleFactor: number): Tensor<D>;
export function pixelUnshuffle(...values: unknown[]): Tensor {
  const { x, downscaleFactor: r } = pixelUnshuffleParameters(values);
  const [channels, height, width] = picture("pixelUnshuffle", x);
  if (height % r !== 0 || width % r !== 0)
    throw new ShapeError(
      "pixelUnshuffle",
      "shapesDiffer",
      `expected a height and a width divisible by downscaleFactor ${r}, got ${x.describe()}`,
    );
  const lead = x.shape.slice(0, -3);
  return tidy(() => {
    const parts = reshape(x, [elementCount(lead), channels, height / r, r, width / r, r]);
    return reshape(permute(parts, [0, 1, 3, 5, 2, 4]), [...lead, channels * r * r, height / r, width / r]);
  });
}
const pixelUnshuffleParameters = parameters("pixelUnshuffle", {
  x: operand(aTensor),
  downscaleFactor: required(aFactor),
});

/**
 * Interleaves the channels of groups: the first of each group, then the second of each, and so on.
 *
 * @param x [batch, channels, …]
 * @param groups the number of groups into which channels are divided
 *
 * @example
 * channelShuffle(tensor([[[1], [2], [3], [4]]]), 2); // float32 [[[1], [3], [2], [4]]]
 *
 * @throws {ShapeError} for fewer than three axes, or a number of channels that is not divisible by `groups`.
 * @throws {ArgumentError} for a number of groups that is not a whole number of at least 1.
 */
export function channelShuffle<D extends DType>(x: Tensor<D>, groups: number): Tensor<D>;
export function channelShuffle(...values: unknown[]): Tensor {
  const { x, groups } = channelShuffleParameters(values);
  const [batch, channels, ...others] = x.shape;
  if (x.rank < 3 || channels % groups !== 0)
    throw new ShapeError(
      "channelShuffle",
      "shapesDiffer",
      `expected [batch, channels, …] with a number of channels divisible by groups ${groups}, got ${x.describe()}`,
    );
  return tidy(() => {
    const parts = reshape(x, [batch, groups, channels / groups, elementCount(others)]);
    return reshape(permute(parts, [0, 2, 1, 3]), x.shape);
  });
}
const channelShuffleParameters = parameters("channelShuffle", { x: operand(aTensor), groups: required(aFactor) });

function picture(operation: string, x: Tensor): [number, number, number] {
  if (x.rank < 3)
    throw new ShapeError(operation, "wrongRank", `expected […, channels, height, width], got ${x.describe()}`);
  return tupleOf(x.shape.slice(-3), 3);
}
