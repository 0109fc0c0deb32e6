/** The autoencoder between pictures and latents. */
import { lastElement } from "../core/collections.ts";
import { ArgumentError, ShapeError } from "../core/errors.ts";
import { aNumber, flag, listOf } from "../core/kinds.ts";
import { positive } from "../core/options.ts";
import { named, operand, parameters, required } from "../core/parameters.ts";
import { GroupNorm } from "../nn/layers/batch_norm.ts";
import { Conv2d } from "../nn/layers/convolution.ts";
import { type LayerOptions, layerOptions } from "../nn/layers/initialization.ts";
import { layerParameters, size } from "../nn/layers/kinds.ts";
import { Module } from "../nn/layers/module.ts";
import * as ops from "../ops/index.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { Attention, Downsample, ResnetBlock, Upsample } from "./blocks.ts";
import { blockDepth } from "./unet.ts";

/** Options of {@link Autoencoder}. */
export interface AutoencoderOptions extends LayerOptions {
  /** Channels of pictures that are encoded. Default 3. */
  inChannels?: number | undefined;
  /** Channels of decoded pictures. Default 3. */
  outChannels?: number | undefined;
  /** Channels of latents. Default 4. */
  latentChannels?: number | undefined;
  /** Channels of each level; each but the last halves the sides. Stable Diffusion has [128, 256, 512, 512]. */
  blockOutChannels: readonly number[];
  /** Residual blocks of each level of the encoder; the decoder has one more. Default 2. */
  layersPerBlock?: number | undefined;
  /** Groups of group norms. Default 32. */
  groups?: number | undefined;
  /** The factor that scales latents for the U-Net to a standard deviation near 1. Default 0.18215. */
  scalingFactor?: number | undefined;
  /** Whether the middle has attention. Default true. */
  midAttention?: boolean | undefined;
  /** Whether there is a convolution after the encoder. Default true. */
  quantConv?: boolean | undefined;
  /** Whether there is a convolution before the decoder. Default true. */
  postQuantConv?: boolean | undefined;
}

const readOptions = parameters("Autoencoder", {
  inChannels: named(size, 3),
  outChannels: named(size, 3),
  latentChannels: named(size, 4),
  blockOutChannels: required(listOf(size, "a list of whole numbers of at least 1")),
  layersPerBlock: named(blockDepth, 2),
  groups: named(size, 32),
  scalingFactor: named(aNumber(positive), 0.18215),
  midAttention: named(flag, true),
  quantConv: named(flag, true),
  postQuantConv: named(flag, true),
  ...layerParameters,
});
type Options = ReturnType<typeof readOptions>;

const eps = 1e-6;
const resnet = ({ groups, ...options }: Options, inputs: number, outputs: number): ResnetBlock =>
  new ResnetBlock({ ...layerOptions(options), inputs, outputs, groups, eps });

/** Residual blocks with a change of size. */
class Stage<Resize extends Module<[x: Tensor], Tensor>> extends Module<[x: Tensor], Tensor> {
  readonly resnets: readonly ResnetBlock[];
  readonly downsamplers: readonly Resize[] = [];
  readonly upsamplers: readonly Resize[] = [];

  constructor(options: Options, inputs: number, outputs: number, depth: number) {
    super();
    this.resnets = Array.from({ length: depth }, (_, at) => resnet(options, at === 0 ? inputs : outputs, outputs));
  }

  override forward(x: Tensor): Tensor {
    return [...this.resnets, ...this.downsamplers, ...this.upsamplers].reduce(
      (states, part) => part.forward(states),
      x,
    );
  }
}
class DownStage extends Stage<Downsample> {
  override readonly downsamplers: readonly Downsample[];

  constructor(options: Options, inputs: number, outputs: number, isLast: boolean) {
    super(options, inputs, outputs, options.layersPerBlock);
    this.downsamplers = isLast ? [] : [new Downsample(outputs, false, layerOptions(options))];
  }
}
class UpStage extends Stage<Upsample> {
  override readonly upsamplers: readonly Upsample[];

  constructor(options: Options, inputs: number, outputs: number, isLast: boolean) {
    super(options, inputs, outputs, options.layersPerBlock + 1);
    this.upsamplers = isLast ? [] : [new Upsample(outputs, layerOptions(options))];
  }
}

class Middle extends Module<[x: Tensor], Tensor> {
  readonly attentions: readonly Attention[];
  readonly resnets: readonly [ResnetBlock, ResnetBlock];

  constructor(options: Options, width: number) {
    super();
    const { groups, midAttention } = options;
    const layer = layerOptions(options);
    this.attentions = midAttention ? [new Attention({ ...layer, width, heads: 1, bias: true, groups, eps })] : [];
    this.resnets = [resnet(options, width, width), resnet(options, width, width)];
  }

  override forward(x: Tensor): Tensor {
    const first = this.resnets[0].forward(x);
    return this.resnets[1].forward(this.attentions[0]?.forward(first) ?? first);
  }
}

/** Computes means and log variances of latents. */
class Encoder extends Module<[x: Tensor], Tensor> {
  readonly convIn: Conv2d;
  readonly downBlocks: readonly DownStage[];
  readonly midBlock: Middle;
  readonly convNormOut: GroupNorm;
  readonly convOut: Conv2d;

  constructor(options: Options) {
    super();
    const { inChannels, latentChannels, blockOutChannels: channels, groups } = options;
    const layer = { ...layerOptions(options), padding: 1 };
    const last = lastElement(channels);
    this.convIn = new Conv2d(inChannels, channels[0], 3, layer);
    this.downBlocks = channels.map(
      (width, at) => new DownStage(options, channels[at - 1] ?? width, width, at === channels.length - 1),
    );
    this.midBlock = new Middle(options, last);
    this.convNormOut = new GroupNorm(groups, last, { ...layerOptions(options), eps });
    this.convOut = new Conv2d(last, 2 * latentChannels, 3, layer);
  }

  override forward(x: Tensor): Tensor {
    let states = this.convIn.forward(x);
    for (const block of this.downBlocks) states = block.forward(states);
    return this.convOut.forward(ops.silu(this.convNormOut.forward(this.midBlock.forward(states))));
  }
}

class Decoder extends Module<[x: Tensor], Tensor> {
  readonly convIn: Conv2d;
  readonly midBlock: Middle;
  readonly upBlocks: readonly UpStage[];
  readonly convNormOut: GroupNorm;
  readonly convOut: Conv2d;

  constructor(options: Options) {
    super();
    const { outChannels, latentChannels, groups } = options;
    const channels = options.blockOutChannels.toReversed();
    const layer = { ...layerOptions(options), padding: 1 };
    const last = lastElement(channels);
    this.convIn = new Conv2d(latentChannels, channels[0], 3, layer);
    this.midBlock = new Middle(options, channels[0]);
    this.upBlocks = channels.map(
      (width, at) => new UpStage(options, channels[at - 1] ?? width, width, at === channels.length - 1),
    );
    this.convNormOut = new GroupNorm(groups, last, { ...layerOptions(options), eps });
    this.convOut = new Conv2d(last, outChannels, 3, layer);
  }

  override forward(x: Tensor): Tensor {
    let states = this.midBlock.forward(this.convIn.forward(x));
    for (const block of this.upBlocks) states = block.forward(states);
    return this.convOut.forward(ops.silu(this.convNormOut.forward(states)));
  }
}

/** The normal distribution of latents: {@link Autoencoder.encode}. */
export interface LatentDistribution {
  /** [batch, latentChannels, height, width] */
  readonly mean: Tensor;
  /** The logarithm of the variance, from −30 to 20, shaped like `mean`. */
  readonly logVariance: Tensor;
}

/**
 * Encodes pictures as latents of an eighth of their sides, and decodes them: `AutoencoderKL` of `diffusers`. Parameters
 * have its names in camelCase, such as `decoder.upBlocks.0.resnets.1.conv1.weight`.
 *
 * @example
 * const vae = new diffusion.Autoencoder({ blockOutChannels: [8, 16], layersPerBlock: 1, groups: 4 });
 * const { mean } = vae.encode(randn([1, 3, 16, 16])); // [1, 4, 8, 8]
 * vae.decode(mean).shape; // [1, 3, 16, 16]
 *
 * @throws {ArgumentError} `invalidOption` if `groups` does not divide the channels of each level.
 */
export class Autoencoder extends Module<[x: Tensor], Tensor> {
  readonly encoder: Encoder;
  readonly decoder: Decoder;
  readonly quantConv: Conv2d | null;
  readonly postQuantConv: Conv2d | null;
  readonly #options: Options;

  constructor(options: AutoencoderOptions);
  constructor(...values: unknown[]) {
    super();
    const options = readOptions(values);
    const { latentChannels, blockOutChannels, groups } = options;
    const uneven = blockOutChannels.find((channels) => channels % groups !== 0);
    if (uneven !== undefined || blockOutChannels.length === 0)
      throw new ArgumentError(
        "Autoencoder",
        "invalidOption",
        uneven === undefined
          ? "expected blockOutChannels to have at least one level, got none"
          : `expected ${groups} groups to divide ${uneven} channels`,
      );
    const layer = layerOptions(options);
    this.#options = options;
    this.encoder = new Encoder(options);
    this.decoder = new Decoder(options);
    this.quantConv = options.quantConv ? new Conv2d(2 * latentChannels, 2 * latentChannels, 1, layer) : null;
    this.postQuantConv = options.postQuantConv ? new Conv2d(latentChannels, latentChannels, 1, layer) : null;
  }

  /** The factor that scales latents for the U-Net. */
  get scalingFactor(): number {
    return this.#options.scalingFactor;
  }

  /** Pixels of a picture for each pixel of latents, along a side. */
  get downsampling(): number {
    return 2 ** (this.#options.blockOutChannels.length - 1);
  }

  /**
   * Computes the distribution of the latents of pictures.
   *
   * @param x [batch, inChannels, height, width], from −1 to 1
   *
   * @throws {ShapeError} for another shape.
   */
  encode(x: Tensor): LatentDistribution;
  encode(...values: unknown[]): LatentDistribution {
    const { x } = readEncode(values);
    checkChannels("Autoencoder.encode", x, this.#options.inChannels);
    const [mean, logVariance] = tidy(() => {
      const states = this.encoder.forward(x);
      const [means, logs] = ops.chunk(this.quantConv?.forward(states) ?? states, 2, 1);
      return [means, ops.clamp(logs, -30, 20)] as const;
    });
    return { mean, logVariance };
  }

  /**
   * Decodes latents.
   *
   * @param latents [batch, latentChannels, height, width], without the scaling for the U-Net
   * @returns pictures [batch, outChannels, {@link downsampling} · height, …], about −1 to 1
   *
   * @throws {ShapeError} for another shape.
   */
  decode(latents: Tensor): Tensor;
  decode(...values: unknown[]): Tensor {
    const { latents } = readDecode(values);
    checkChannels("Autoencoder.decode", latents, this.#options.latentChannels);
    return tidy(() => this.decoder.forward(this.postQuantConv?.forward(latents) ?? latents));
  }

  /** Encodes pictures, and decodes the means of their latents. */
  override forward(x: Tensor): Tensor {
    return tidy(() => this.decode(this.encode(x).mean));
  }
}
const readEncode = parameters("Autoencoder.encode", { x: operand(aTensor) });
const readDecode = parameters("Autoencoder.decode", { latents: operand(aTensor) });

function checkChannels(operation: string, x: Tensor, channels: number): void {
  if (x.rank === 4 && x.shape[1] === channels) return;
  throw new ShapeError(operation, "wrongShape", `expected [batch, ${channels}, height, width], got ${x.describe()}`);
}
