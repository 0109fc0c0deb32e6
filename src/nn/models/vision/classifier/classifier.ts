/** Classifiers of images that are built from an {@link ImageClassifierDescription}. */
import { ShapeError } from "../../../../core/errors.ts";
import { mean } from "../../../../ops/reduction/mean.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { Module } from "../../../layers/module.ts";
import { LayerNorm } from "../../../layers/normalization.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import { LabelledImageModel } from "../image_model.ts";
import { ResNet } from "../resnet/resnet.ts";
import type { SegmenterStageDescription } from "../segformer/description.ts";
import { SegmenterStage } from "../segformer/stage.ts";
import { ConvNext } from "./convnext.ts";
import type { ImageClassifierDescription, NetworkDescription } from "./description.ts";
import { Swin } from "./swin.ts";

type StagesDescription = NetworkDescription & { readonly kind: "segformer" };

/** The stages of SegFormer's encoder. */
class SegmenterEncoder extends Module<[pixels: Tensor], Tensor> {
  readonly stages: readonly SegmenterStage[];

  constructor(channels: number, { stages, activation }: StagesDescription, options: LayerOptions) {
    super();
    const inputs = (at: number) => (stages[at - 1] as SegmenterStageDescription | undefined)?.width ?? channels;
    this.stages = stages.map((stage, at) => new SegmenterStage(inputs(at), stage, activation, layerOptions(options)));
  }

  /** @param pixels [batch, channels, height, width] @returns the planes of the last stage, [batch, width, …] */
  override forward(pixels: Tensor): Tensor {
    return this.stages.reduce((x, stage) => stage.forward(x), pixels);
  }
}

function newNetwork(channels: number, network: NetworkDescription, options: LayerOptions) {
  switch (network.kind) {
    case "resnet":
      return new ResNet(network, options);
    case "segformer":
      return new SegmenterEncoder(channels, network, options);
    case "convnext":
      return new ConvNext(channels, network, options);
    case "swin":
      return new Swin(channels, network, options);
  }
}

/**
 * A classifier of images whose network computes planes: ResNet, ConvNeXt, Swin or SegFormer's encoder. `loadModel`
 * returns it for a folder of such a model; `classifyImages` and `embedImages` run it.
 *
 * | parameter | shape |
 * |---|---|
 * | `network. …` | see {@link ResNet}, {@link ConvNext}, {@link Swin} and {@link SegmenterStage} |
 * | `norm.weight` | [width] of ConvNeXt; null for others |
 * | `head.weight` | [labels, width]; null for a model without a classifier |
 */
export class ImageClassifier extends LabelledImageModel {
  readonly network: ResNet | SegmenterEncoder | ConvNext | Swin;
  readonly norm: LayerNorm | null;
  readonly head: Linear | QuantizedLinear | null;
  readonly #description: ImageClassifierDescription;

  constructor(description: ImageClassifierDescription, options: LayerOptions = {}) {
    super();
    const { channels, network, width, eps, labels } = description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    this.#description = description;
    this.network = newNetwork(channels, network, shared);
    this.norm = eps === undefined ? null : new LayerNorm(width, { ...shared, eps });
    this.head = labels === undefined ? null : new Linear(width, labels, shared);
  }

  /** The description that the model was built from. */
  get description(): ImageClassifierDescription {
    return this.#description;
  }

  /** @internal */
  get firstWeight(): Tensor {
    const { network } = this;
    if ("stem" in network) return network.stem[0].convolution.weight;
    return "patch" in network ? network.patch.weight : network.stages[0].patch.weight;
  }

  /**
   * Computes a vector for each image: the mean of the last planes over all places, normalized in ConvNeXt.
   *
   * @param pixels floats [batch, channels, height, width], from an {@link ImageProcessor} @returns [batch, width]
   *
   * @throws {ShapeError} for other shapes.
   */
  embedImages(pixels: Tensor): Tensor {
    this.checkPixels(pixels);
    return tidy(() => {
      const vectors = mean(this.network.forward(pixels), { dim: [2, 3] });
      return this.norm ? this.norm.forward(vectors) : vectors;
    });
  }

  /**
   * Computes the scores of the labels; without a classifier, the vectors of {@link embedImages}.
   *
   * @param pixels floats [batch, channels, height, width] @returns [batch, labels]
   *
   * @throws {ShapeError} for other shapes.
   */
  override forward(pixels: Tensor): Tensor {
    return tidy(() => {
      const vectors = this.embedImages(pixels);
      return this.head ? this.head.forward(vectors) : vectors;
    });
  }

  private checkPixels(pixels: Tensor): void {
    pixels.checkAlive("ImageClassifier");
    const { channels } = this.#description;
    if (pixels.rank === 4 && pixels.shape[1] === channels) return;
    throw new ShapeError(
      "ImageClassifier",
      "wrongShape",
      `expected pixels to be [batch, ${channels}, height, width], got ${pixels.describe()}; an ImageProcessor ` +
        "converts images",
    );
  }
}
