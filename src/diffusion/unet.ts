/** The U-Net of Stable Diffusion. */
import { lastElement } from "../core/collections.ts";
import { ArgumentError, ShapeError } from "../core/errors.ts";
import { aNumber, choice, either, flag, listOf } from "../core/kinds.ts";
import { count, finite } from "../core/options.ts";
import { type Kind, named, operand, optionalOperand, parameters, required } from "../core/parameters.ts";
import { GroupNorm } from "../nn/layers/batch_norm.ts";
import { Conv2d } from "../nn/layers/convolution.ts";
import { type LayerOptions, layerOptions } from "../nn/layers/initialization.ts";
import { epsilon, layerParameters, size } from "../nn/layers/kinds.ts";
import { Module } from "../nn/layers/module.ts";
import { toDType } from "../ops/copy/cast.ts";
import * as ops from "../ops/index.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { Downsample, ResnetBlock, SpatialTransformer, Upsample } from "./blocks.ts";
import { EmbeddingLayers, timestepEmbedding, timestepsKind } from "./time_embedding.ts";

/** Options of {@link UNet}. */
export interface UNetOptions extends LayerOptions {
  /** Channels of the input. Default 4. */
  inChannels?: number | undefined;
  /** Channels of the output. Default 4. */
  outChannels?: number | undefined;
  /** Channels of each level, from the full size down. Stable Diffusion has [320, 640, 1280, 1280]. */
  blockOutChannels: readonly number[];
  /** Whether each level has attention. Default: all but the last. */
  attention?: readonly boolean[] | undefined;
  /** The middle: with attention, without, or none. Default `"attention"`. */
  midBlock?: "attention" | "residual" | "none" | undefined;
  /** Residual blocks of each level on the way down; there is one more on the way up. Default 2. */
  layersPerBlock?: number | undefined;
  /** Attention heads of each level, or of all. Default 8. */
  heads?: number | readonly number[] | undefined;
  /** Transformer blocks of each attention of a level, or of all levels. Default 1. */
  transformerLayers?: number | readonly number[] | undefined;
  /** The width of the context that pixels attend to; null for none. Default 768. */
  contextWidth?: number | null | undefined;
  /** Whether projections around transformer blocks are linear layers, as in Stable Diffusion 2. Default false. */
  linearProjection?: boolean | undefined;
  /** Groups of group norms; they divide the channels of each level. Default 32. */
  groups?: number | undefined;
  /** Added to variances in residual blocks. Default 1e-5. */
  normEps?: number | undefined;
  /** Whether cosines come before sines in the embedding of timesteps. Default true. */
  flipSinToCos?: boolean | undefined;
  /** See {@link timestepEmbedding}. Default 0. */
  freqShift?: number | undefined;
}

const channelList = listOf(size, "a list of whole numbers of at least 1");
/** A number of blocks of a level. */
export const blockDepth: Kind<number> = aNumber({
  holds: (value) => count.holds(value) && value <= 64,
  expected: "a whole number from 1 to 64",
});
const perLevel: Kind<number | number[]> = either(size, channelList);

/** The parameters of {@link UNetOptions}. */
const unetParameters = {
  inChannels: named(size, 4),
  outChannels: named(size, 4),
  blockOutChannels: required(channelList),
  attention: named(listOf(flag, "a list of true and false")),
  midBlock: named(choice("attention", "residual", "none"), "attention"),
  layersPerBlock: named(blockDepth, 2),
  heads: named(perLevel, 8),
  transformerLayers: named(either(blockDepth, listOf(blockDepth, "a list of whole numbers from 1 to 64")), 1),
  contextWidth: named<number | null>(
    {
      expected: "a whole number of at least 1, or null",
      parse: (value) => (value === null || (typeof value === "number" && count.holds(value)) ? value : undefined),
    },
    768,
  ),
  linearProjection: named(flag, false),
  groups: named(size, 32),
  normEps: named(epsilon, 1e-5),
  flipSinToCos: named(flag, true),
  freqShift: named(aNumber(finite), 0),
  ...layerParameters,
} as const;

const readOptions = parameters("UNet", unetParameters);
type Options = ReturnType<typeof readOptions> & { readonly attention: readonly boolean[] };

/** The options of one level. */
interface Level extends LayerOptions {
  readonly channels: number;
  readonly heads: number;
  readonly layers: number;
  readonly timeWidth: number;
  readonly contextWidth: number | undefined;
  readonly groups: number;
  readonly eps: number;
  readonly linearProjection: boolean;
}

const resnet = (level: Level, inputs: number): ResnetBlock =>
  new ResnetBlock({ ...level, inputs, outputs: level.channels });
const transformer = (level: Level): SpatialTransformer => new SpatialTransformer({ ...level, width: level.channels });

/** A level on the way down. */
class DownBlock extends Module<[x: Tensor, time: Tensor, context?: Tensor], Tensor[]> {
  readonly attentions: readonly SpatialTransformer[];
  readonly resnets: readonly ResnetBlock[];
  readonly downsamplers: readonly Downsample[];

  constructor(level: Level, inputs: number, depth: number, parts: { hasAttention: boolean; isLast: boolean }) {
    super();
    this.resnets = Array.from({ length: depth }, (_, at) => resnet(level, at === 0 ? inputs : level.channels));
    this.attentions = parts.hasAttention ? this.resnets.map(() => transformer(level)) : [];
    this.downsamplers = parts.isLast ? [] : [new Downsample(level.channels, true, layerOptions(level))];
  }

  /** @returns the states after each residual block and after the downsampling */
  override forward(x: Tensor, time: Tensor, context?: Tensor): Tensor[] {
    const states: Tensor[] = [];
    for (const [at, block] of this.resnets.entries()) {
      const mixed = block.forward(states.at(-1) ?? x, time);
      states.push(this.attentions[at]?.forward(mixed, context) ?? mixed);
    }
    return [...states, ...this.downsamplers.map((part) => part.forward(lastElement(states)))];
  }
}

/** The level in the middle. */
class MidBlock extends Module<[x: Tensor, time: Tensor, context?: Tensor], Tensor> {
  readonly attentions: readonly SpatialTransformer[];
  readonly resnets: readonly ResnetBlock[];

  constructor(level: Level, hasAttention: boolean) {
    super();
    this.attentions = hasAttention ? [transformer(level)] : [];
    this.resnets = [0, 1].map(() => resnet(level, level.channels));
  }

  override forward(x: Tensor, time: Tensor, context?: Tensor): Tensor {
    const first = this.resnets[0].forward(x, time);
    return this.resnets[1].forward(this.attentions[0]?.forward(first, context) ?? first, time);
  }
}

/** A level on the way up. */
class UpBlock extends Module<[x: Tensor, states: Tensor[], time: Tensor, context?: Tensor], Tensor> {
  readonly attentions: readonly SpatialTransformer[];
  readonly resnets: readonly ResnetBlock[];
  readonly upsamplers: readonly Upsample[];

  constructor(level: Level, inputs: readonly number[], parts: { hasAttention: boolean; isLast: boolean }) {
    super();
    this.resnets = inputs.map((channels) => resnet(level, channels));
    this.attentions = parts.hasAttention ? this.resnets.map(() => transformer(level)) : [];
    this.upsamplers = parts.isLast ? [] : [new Upsample(level.channels, layerOptions(level))];
  }

  /** Takes states from the way down, the last first. The result has the size of the next state. */
  override forward(x: Tensor, states: Tensor[], time: Tensor, context?: Tensor): Tensor {
    let result = x;
    for (const [at, block] of this.resnets.entries()) {
      result = block.forward(ops.cat([result, states.pop()!], { dim: 1 }), time);
      result = this.attentions[at]?.forward(result, context) ?? result;
    }
    for (const part of this.upsamplers) result = part.forward(result, lastElement(states).shape.slice(2));
    return result;
  }
}

/**
 * Predicts the noise in pictures: the U-Net of Stable Diffusion, `UNet2DConditionModel` of `diffusers`. Parameters have
 * its names in camelCase, such as `downBlocks.0.resnets.1.conv1.weight`.
 *
 * @example
 * const unet = new diffusion.UNet({
 *   inChannels: 1,
 *   outChannels: 1,
 *   blockOutChannels: [16, 32],
 *   attention: [false, true],
 *   layersPerBlock: 1,
 *   heads: 2,
 *   contextWidth: null,
 *   groups: 8,
 * });
 * unet.forward(randn([2, 1, 8, 8]), [10, 990]).shape; // [2, 1, 8, 8]
 *
 * @throws {ArgumentError} `invalidOption` for lists whose length differs from that of `blockOutChannels`, and heads or
 * groups that do not divide channels.
 */
export class UNet extends Module<
  [x: Tensor, timesteps: Tensor | readonly number[] | number, context?: Tensor],
  Tensor
> {
  readonly convIn: Conv2d;
  readonly timeEmbedding: EmbeddingLayers;
  readonly downBlocks: readonly DownBlock[];
  readonly midBlock: MidBlock | null;
  readonly upBlocks: readonly UpBlock[];
  readonly convNormOut: GroupNorm;
  readonly convOut: Conv2d;
  readonly #options: Options;

  constructor(options: UNetOptions);
  constructor(...values: unknown[]) {
    super();
    const given = readOptions(values);
    const attention = given.attention ?? given.blockOutChannels.map((_, at, all) => at < all.length - 1);
    const options = { ...given, attention };
    const levels = levelsOf(options);
    const { inChannels, outChannels, blockOutChannels: channels, layersPerBlock, groups } = options;
    const layer = layerOptions(options);
    const [first, last] = [channels[0], channels.length - 1];
    this.#options = options;
    this.convIn = new Conv2d(inChannels, first, 3, { ...layer, padding: 1 });
    this.timeEmbedding = new EmbeddingLayers(first, 4 * first, layer);
    this.downBlocks = levels.map(
      (level, at) =>
        new DownBlock(level, channels[at - 1] ?? first, layersPerBlock, {
          hasAttention: attention[at],
          isLast: at === last,
        }),
    );
    this.midBlock = options.midBlock === "none" ? null : new MidBlock(levels[last], options.midBlock === "attention");
    this.upBlocks = levels
      .map((level, at) => {
        // each residual block also gets the states of a block on the way down, with the channels of that block's level
        const skips = Array.from({ length: layersPerBlock + 1 }, (_, place) =>
          place < layersPerBlock ? level.channels : (channels[at - 1] ?? first),
        );
        const before = [channels[at + 1] ?? level.channels, ...skips.slice(1).map(() => level.channels)];
        const inputs = skips.map((skip, place) => skip + before[place]);
        return new UpBlock(level, inputs, { hasAttention: attention[at], isLast: at === 0 });
      })
      .reverse();
    this.convNormOut = new GroupNorm(groups, first, { ...layer, eps: options.normEps });
    this.convOut = new Conv2d(first, outChannels, 3, { ...layer, padding: 1 });
  }

  /** The number of channels of the input. */
  get inChannels(): number {
    return this.#options.inChannels;
  }

  /**
   * @param x [batch, inChannels, height, width], of any height and width
   * @param timesteps one for each of the batch, or one number for all
   * @param context [batch, tokens, contextWidth], to which pixels attend
   * @returns [batch, outChannels, height, width]
   *
   * @throws {ShapeError} for other shapes. @throws {ArgumentError} `noContext` without the context.
   */
  override forward(x: Tensor, timesteps: Tensor | readonly number[] | number, context?: Tensor): Tensor;
  override forward(...values: unknown[]): Tensor {
    const { x, timesteps, context } = readForward(values);
    this.#check(x, timesteps, context);
    const { flipSinToCos, freqShift, blockOutChannels } = this.#options;
    return tidy(() => {
      const angles = timestepEmbedding(timesteps, blockOutChannels[0], { flipSinToCos, freqShift });
      const time = this.timeEmbedding.forward(toDType(angles, this.convIn.weight.dtype));
      const states = [this.convIn.forward(x)];
      for (const block of this.downBlocks) states.push(...block.forward(lastElement(states), time, context));
      const middle = lastElement(states);
      let result = this.midBlock ? this.midBlock.forward(middle, time, context) : middle;
      for (const block of this.upBlocks) result = block.forward(result, states, time, context);
      return this.convOut.forward(ops.silu(this.convNormOut.forward(result)));
    });
  }

  #check(x: Tensor, timesteps: Tensor, context: Tensor | undefined): void {
    const { inChannels, contextWidth, attention, midBlock } = this.#options;
    if (x.rank !== 4 || x.shape[1] !== inChannels)
      throw new ShapeError(
        "UNet",
        "wrongShape",
        `expected x to be [batch, ${inChannels}, height, width], got ${x.describe()}`,
      );
    const batch = x.shape[0];
    if (timesteps.shape[0] !== 1 && timesteps.shape[0] !== batch)
      throw new ShapeError(
        "UNet",
        "wrongShape",
        `expected one timestep, or one for each of ${batch} pictures, got ${timesteps.shape[0]}`,
      );
    if (contextWidth === null || !(midBlock === "attention" || attention.includes(true))) return;
    if (context === undefined)
      throw new ArgumentError(
        "UNet",
        "noContext",
        "expected a context for cross-attention; pass it as the third argument",
      );
    if (context.rank !== 3 || context.shape[0] !== batch || context.shape[2] !== contextWidth)
      throw new ShapeError(
        "UNet",
        "wrongShape",
        `expected context to be [${batch}, tokens, ${contextWidth}], got ${context.describe()}`,
      );
  }
}
const readForward = parameters("UNet.forward", {
  x: operand(aTensor),
  timesteps: operand(timestepsKind),
  context: optionalOperand(aTensor),
});

/** @throws {ArgumentError} */
function levelsOf(options: Options): Level[] {
  const { blockOutChannels, attention, groups, normEps, linearProjection } = options;
  if (blockOutChannels.length === 0)
    throw new ArgumentError("UNet", "invalidOption", "expected blockOutChannels to have at least one level, got none");
  const wrong = (message: string) => new ArgumentError("UNet", "invalidOption", message);
  const each = (name: "heads" | "transformerLayers") => {
    const value = options[name];
    return typeof value === "number" ? blockOutChannels.map(() => value) : value;
  };
  const [heads, layers] = [each("heads"), each("transformerLayers")];
  for (const [name, list] of Object.entries({ attention, heads, transformerLayers: layers }))
    if (list.length !== blockOutChannels.length)
      throw wrong(
        `expected ${name} to have one value for each of ${blockOutChannels.length} levels, got ${list.length}`,
      );
  return blockOutChannels.map((channels, at) => {
    if (channels % groups !== 0) throw wrong(`expected ${groups} groups to divide ${channels} channels`);
    if (channels % heads[at] !== 0) throw wrong(`expected ${heads[at]} heads to divide ${channels} channels`);
    return {
      ...layerOptions(options),
      channels,
      heads: heads[at],
      layers: layers[at],
      groups,
      linearProjection,
      timeWidth: 4 * blockOutChannels[0],
      contextWidth: options.contextWidth ?? undefined,
      eps: normEps,
    };
  });
}
