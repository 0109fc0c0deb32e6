/** Layers that only rearrange elements of images: pixel shuffles, channel shuffles and windows. */
import { aNumber } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { type Given, operand, optional, required } from "../../core/parameters.ts";
import { type PerAxis, perAxis } from "../../ops/convolution/geometry.ts";
import { fold, type UnfoldOptions, unfold } from "../../ops/convolution/unfold.ts";
import { channelShuffle, pixelShuffle, pixelUnshuffle } from "../../ops/picture/pixel_shuffle.ts";
import { moduleOf, taking } from "./module_of.ts";

const aFactor = required(aNumber(count));
const finer = taking<[upscaleFactor: number] | [options: { upscaleFactor: number }]>({ upscaleFactor: aFactor });
const coarser = taking<[downscaleFactor: number] | [options: { downscaleFactor: number }]>({
  downscaleFactor: aFactor,
});
const grouped = taking<[groups: number] | [options: { groups: number }]>({ groups: aFactor });

/**
 * Applies `pixelShuffle`: rearranges channels into an image of higher resolution.
 *
 * @example
 * new PixelShuffle(2).forward(randn([1, 8, 3, 3])); // [1, 2, 6, 6]
 */
export class PixelShuffle extends moduleOf("PixelShuffle", { pixelShuffle }, finer) {}

/**
 * Applies `pixelUnshuffle`: rearranges an image into more channels of lower resolution.
 *
 * @example
 * new PixelUnshuffle(2).forward(randn([1, 2, 6, 6])); // [1, 8, 3, 3]
 */
export class PixelUnshuffle extends moduleOf("PixelUnshuffle", { pixelUnshuffle }, coarser) {}

/**
 * Applies `channelShuffle`: interleaves the channels of groups.
 *
 * @example
 * new ChannelShuffle(2).forward(randn([1, 4, 3, 3])); // [1, 4, 3, 3]
 */
export class ChannelShuffle extends moduleOf("ChannelShuffle", { channelShuffle }, grouped) {}

type Windows = Given<UnfoldOptions, ["dilation", "padding", "stride"]>;
const windowOptions = {
  dilation: optional(perAxis, 1),
  padding: optional(perAxis, 0),
  stride: optional(perAxis, 1),
} as const;

const unfolding = taking<[kernelSize: PerAxis, ...options: Windows], UnfoldOptions & { kernelSize: PerAxis }>({
  kernelSize: operand(perAxis),
  ...windowOptions,
});
const folding = taking<
  [outputSize: PerAxis, kernelSize: PerAxis, ...options: Windows],
  UnfoldOptions & { outputSize: PerAxis; kernelSize: PerAxis }
>({ outputSize: operand(perAxis), kernelSize: operand(perAxis), ...windowOptions });

/**
 * Applies `unfold`: extracts the windows of an image as columns.
 *
 * @example
 * new Unfold(2).forward(randn([1, 3, 4, 4])); // [1, 12, 9]
 */
export class Unfold extends moduleOf("Unfold", { unfold }, unfolding) {}

/**
 * Applies `fold`: assembles images from columns of windows, adding up where windows overlap.
 *
 * @example
 * new Fold([4, 4], 2).forward(randn([1, 12, 9])); // [1, 3, 4, 4]
 */
export class Fold extends moduleOf("Fold", { fold }, folding) {}
