/** What only rearranges pictures and their windows, as layers. */
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

/** Channels as elements of a finer picture. See `pixelShuffle`. */
export class PixelShuffle extends moduleOf("PixelShuffle", { pixelShuffle }, finer) {}

/** Elements of a picture as channels of a coarser one. See `pixelUnshuffle`. */
export class PixelUnshuffle extends moduleOf("PixelUnshuffle", { pixelUnshuffle }, coarser) {}

/** The channels of groups in turn. See `channelShuffle`. */
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

/** The windows of a picture as columns. See `unfold`. */
export class Unfold extends moduleOf("Unfold", { unfold }, unfolding) {}

/** Pictures from the columns of their windows: what overlaps is added up. See `fold`. */
export class Fold extends moduleOf("Fold", { fold }, folding) {}
