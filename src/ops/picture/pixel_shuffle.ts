/** Rearrangement of channels into pixels of a larger image, and back. */
import { needsGradient } from "../../autograd/record.ts";
import { capturing } from "../../backend/capture.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { ShapeError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { elementCount, rowMajorStrides, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { folded, fusesUnfold, unfolded, type Windows } from "../convolution/unfold.ts";
import { copyOf } from "../copy/copy.ts";
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
  const shape = [...lead, outputChannels, height * r, width * r];
  if (fusesUnfold(x)) return folded("pixelShuffle", x, blocksOf(r, [height, width]), shape);
  const parts = [elementCount(lead), outputChannels, r, r, height, width];
  return rearranged(x, parts, [0, 1, 4, 2, 5, 3], shape);
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
  const shape = [...lead, channels * r * r, height / r, width / r];
  if (fusesUnfold(x)) return unfolded("pixelUnshuffle", x, blocksOf(r, shape.slice(-2)), shape);
  const parts = [elementCount(lead), channels, height / r, r, width / r, r];
  return rearranged(x, parts, [0, 1, 3, 5, 2, 4], shape);
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
  return rearranged(x, [batch, groups, channels / groups, elementCount(others)], [0, 2, 1, 3], x.shape);
}
const channelShuffleParameters = parameters("channelShuffle", { x: operand(aTensor), groups: required(aFactor) });

/** Returns the windows that divide an image into r × r blocks. */
const blocksOf = (r: number, output: readonly number[]): Windows => ({
  kernel: [r, r],
  stride: [r, r],
  dilation: [1, 1],
  padding: [0, 0],
  output,
});

/** Divides axes into parts, permutes them and merges them. Where nothing is recorded, views need no graph. */
function rearranged(x: Tensor, parts: readonly number[], order: readonly number[], shape: Shape): Tensor {
  if (!x.isContiguous || needsGradient(x) || capturing() !== undefined || liftingOf([x], undefined) !== undefined)
    return tidy(() => reshape(permute(reshape(x, parts), order), shape));
  const strides = rowMajorStrides(parts);
  const at = (list: readonly number[]): number[] => order.map((axis) => list[axis]);
  using view = new Tensor(x.storage, x.dtype, at(parts), at(strides), x.offset);
  using copy = copyOf("reshape", view);
  return new Tensor(copy.storage, copy.dtype, shape, rowMajorStrides(shape), copy.offset);
}

function picture(operation: string, x: Tensor): [number, number, number] {
  if (x.rank < 3)
    throw new ShapeError(operation, "wrongRank", `expected […, channels, height, width], got ${x.describe()}`);
  return tupleOf(x.shape.slice(-3), 3);
}
