/** What only rearranges pictures and their windows, as layers. */
import { aNumber } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import { type PerAxis, perAxis } from "../../ops/convolution/geometry.ts";
import { fold, type UnfoldOptions, unfold } from "../../ops/convolution/unfold.ts";
import { channelShuffle, pixelShuffle, pixelUnshuffle } from "../../ops/picture/pixel_shuffle.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { ModuleWithOptions } from "./with_options.ts";

const aFactor = aNumber(count);

/** Channels as elements of a finer picture. See `pixelShuffle`. */
export class PixelShuffle extends ModuleWithOptions<[x: Tensor], { readonly upscaleFactor: number }> {
  constructor(...factor: [upscaleFactor: number] | [options: { upscaleFactor: number }]);
  constructor(...values: unknown[]) {
    super(pixelShuffleParameters(values));
  }

  override forward(x: Tensor): Tensor {
    return pixelShuffle(x, this.options.upscaleFactor);
  }
}
const pixelShuffleParameters = parameters("PixelShuffle", { upscaleFactor: required(aFactor) });

/** Elements of a picture as channels of a coarser one. See `pixelUnshuffle`. */
export class PixelUnshuffle extends ModuleWithOptions<[x: Tensor], { readonly downscaleFactor: number }> {
  constructor(...factor: [downscaleFactor: number] | [options: { downscaleFactor: number }]);
  constructor(...values: unknown[]) {
    super(pixelUnshuffleParameters(values));
  }

  override forward(x: Tensor): Tensor {
    return pixelUnshuffle(x, this.options.downscaleFactor);
  }
}
const pixelUnshuffleParameters = parameters("PixelUnshuffle", { downscaleFactor: required(aFactor) });

/** The channels of groups in turn. See `channelShuffle`. */
export class ChannelShuffle extends ModuleWithOptions<[x: Tensor], { readonly groups: number }> {
  constructor(...groups: [groups: number] | [options: { groups: number }]);
  constructor(...values: unknown[]) {
    super(channelShuffleParameters(values));
  }

  override forward(x: Tensor): Tensor {
    return channelShuffle(x, this.options.groups);
  }
}
const channelShuffleParameters = parameters("ChannelShuffle", { groups: required(aFactor) });

const windowOptions = {
  dilation: optional(perAxis, 1),
  padding: optional(perAxis, 0),
  stride: optional(perAxis, 1),
} as const;

/** The windows of a picture as columns. See `unfold`. */
export class Unfold extends ModuleWithOptions<[x: Tensor], UnfoldOptions & { readonly kernelSize: PerAxis }> {
  constructor(kernelSize: PerAxis, ...options: Given<UnfoldOptions, ["dilation", "padding", "stride"]>);
  constructor(...values: unknown[]) {
    super(unfoldParameters(values));
  }

  override forward(x: Tensor): Tensor {
    const { kernelSize, ...options } = this.options;
    return unfold(x, kernelSize, options);
  }
}
const unfoldParameters = parameters("Unfold", { kernelSize: operand(perAxis), ...windowOptions });

/** Pictures from the columns of their windows: what overlaps is added up. See `fold`. */
export class Fold extends ModuleWithOptions<
  [x: Tensor],
  UnfoldOptions & { readonly outputSize: PerAxis; readonly kernelSize: PerAxis }
> {
  constructor(
    outputSize: PerAxis,
    kernelSize: PerAxis,
    ...options: Given<UnfoldOptions, ["dilation", "padding", "stride"]>
  );
  constructor(...values: unknown[]) {
    super(foldParameters(values));
  }

  override forward(x: Tensor): Tensor {
    const { outputSize, kernelSize, ...options } = this.options;
    return fold(x, outputSize, kernelSize, options);
  }
}
const foldParameters = parameters("Fold", {
  outputSize: operand(perAxis),
  kernelSize: operand(perAxis),
  ...windowOptions,
});
