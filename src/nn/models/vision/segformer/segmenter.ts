/** Models that predict a label for each pixel, built from a {@link SegmenterDescription}. */
import { ShapeError } from "../../../../core/errors.ts";
import { relu } from "../../../../ops/activation/relu.ts";
import { cat } from "../../../../ops/join/cat.ts";
import { interpolate } from "../../../../ops/picture/interpolate.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { Conv2d } from "../../../layers/convolution.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import { LabelledImageModel } from "../image_model.ts";
import { FixedBatchNorm, gridOfPlanes, planesOf, tokensOf } from "../planes.ts";
import type { SegmenterDescription } from "./description.ts";
import { SegmenterStage } from "./stage.ts";

/**
 * A model that predicts a label for each pixel, such as SegFormer. `loadModel` returns it for a folder of such a model;
 * `segmentImage` runs it.
 *
 * | parameter | shape |
 * |---|---|
 * | `stages.0. …` | see {@link SegmenterStage} |
 * | `projections.0.weight` | [decoderWidth, width], one for each stage |
 * | `fusion.weight` | [decoderWidth, stages · decoderWidth, 1, 1], of the last stage first |
 * | `fusionNorm.weight` | [decoderWidth] |
 * | `head.weight` | [labels, decoderWidth, 1, 1] |
 *
 * Source: E. Xie et al., "SegFormer: Simple and Efficient Design for Semantic Segmentation with Transformers", 2021.
 */
export class SemanticSegmenter extends LabelledImageModel {
  readonly stages: readonly SegmenterStage[];
  readonly projections: readonly (Linear | QuantizedLinear)[];
  readonly fusion: Conv2d;
  readonly fusionNorm: FixedBatchNorm;
  readonly head: Conv2d;
  readonly #description: SegmenterDescription;

  constructor(description: SegmenterDescription, options: LayerOptions = {}) {
    super();
    const { channels, stages, activation, decoderWidth: width, labels } = description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    this.#description = description;
    this.stages = stages.map(
      (stage, at) => new SegmenterStage(stages[at - 1]?.width ?? channels, stage, activation, shared),
    );
    this.projections = stages.map((stage) => new Linear(stage.width, width, shared));
    this.fusion = new Conv2d(width * stages.length, width, 1, { ...shared, bias: false });
    this.fusionNorm = new FixedBatchNorm(width, shared);
    this.head = new Conv2d(width, labels, 1, shared);
  }

  /** The description that the model was built from. */
  get description(): SegmenterDescription {
    return this.#description;
  }

  /** @internal */
  get firstWeight(): Tensor {
    return this.stages[0].patch.weight;
  }

  /**
   * Computes the scores of labels on a grid of patches, whose sides are about a quarter of the image's.
   *
   * @param pixels floats [batch, channels, height, width], from an {@link ImageProcessor}
   * @returns [batch, labels, rows, columns]
   *
   * @throws {ShapeError} for other shapes.
   */
  override forward(pixels: Tensor): Tensor {
    this.checkPixels(pixels);
    return tidy(() => {
      const states: Tensor[] = [];
      for (const stage of this.stages) states.push(stage.forward(states.at(-1) ?? pixels));
      const size = [...gridOfPlanes(states[0])];
      const projected = states.map((state, at) => {
        const planes = planesOf(this.projections[at].forward(tokensOf(state)), gridOfPlanes(state));
        return interpolate(planes, { size, mode: "bilinear", alignCorners: false });
      });
      return this.head.forward(relu(this.fusionNorm.forward(this.fusion.forward(cat(projected.reverse(), 1)))));
    });
  }

  private checkPixels(pixels: Tensor): void {
    pixels.checkAlive("SemanticSegmenter");
    const { channels, stages } = this.#description;
    const least = stages.reduce((product, { stride, reduction }) => Math.max(product, stride * reduction), 1);
    const { rank, shape } = pixels;
    if (rank === 4 && shape[1] === channels && shape[2] >= least && shape[3] >= least) return;
    throw new ShapeError(
      "SemanticSegmenter",
      "wrongShape",
      `expected pixels to be [batch, ${channels}, height, width] of at least ${least} x ${least}, ` +
        `got ${pixels.describe()}; an ImageProcessor converts images`,
    );
  }
}
