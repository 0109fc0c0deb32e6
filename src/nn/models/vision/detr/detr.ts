/** Detectors of the DETR family, built from a {@link DetrDescription}. */
import { lastElement } from "../../../../core/collections.ts";
import { ShapeError } from "../../../../core/errors.ts";
import { sigmoid } from "../../../../ops/activation/sigmoid.ts";
import { zeros } from "../../../../ops/creation/full.ts";
import { unsqueeze } from "../../../../ops/view/squeeze.ts";
import type { FloatDType } from "../../../../tensor/dtype.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { Conv2d } from "../../../layers/convolution.ts";
import { Embedding } from "../../../layers/embedding.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { LayerNorm } from "../../../layers/normalization.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import { DetectionHead, type Detections } from "../detector.ts";
import { LabelledImageModel } from "../image_model.ts";
import { gridOfPlanes, tokensOf } from "../planes.ts";
import { ResNet } from "../resnet/resnet.ts";
import { DetrBlock } from "./block.ts";
import type { DetrDescription } from "./description.ts";
import { sinePositions } from "./positions.ts";

/**
 * A detector of objects of the DETR family: a {@link ResNet}, a transformer over the places of its result, and learned
 * queries, each of which finds one object or none. `loadModel` returns it for a folder of such a model; `detectObjects`
 * runs it.
 *
 * | parameter | shape |
 * |---|---|
 * | `backbone. …` | see {@link ResNet} |
 * | `projection.weight` | [width, backbone's width, 1, 1] |
 * | `encoderBlocks.0. …`, `blocks.0. …` | see {@link DetrBlock} |
 * | `queries.weight` | [queries, width] |
 * | `finalNorm.weight` | [width] |
 * | `labelHead.weight` | [labels + 1, width]; the last is "no object" |
 * | `boxHead. …` | see {@link DetectionHead} |
 *
 * Source: N. Carion et al., "End-to-End Object Detection with Transformers", 2020.
 */
export class Detr extends LabelledImageModel<Detections> {
  readonly backbone: ResNet;
  readonly projection: Conv2d;
  readonly encoderBlocks: readonly DetrBlock[];
  readonly queries: Embedding;
  readonly blocks: readonly DetrBlock[];
  readonly finalNorm: LayerNorm;
  readonly labelHead: Linear | QuantizedLinear;
  readonly boxHead: DetectionHead;
  readonly #description: DetrDescription;

  constructor(description: DetrDescription, options: LayerOptions = {}) {
    super();
    const { backbone, width, queries, encoder, decoder, labels } = description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    const stack = (of: typeof encoder, isDecoder: boolean) =>
      Array.from({ length: of.layers }, () => new DetrBlock(description, of, { ...shared, isDecoder }));
    this.#description = description;
    this.backbone = new ResNet(backbone, shared);
    this.projection = new Conv2d(lastElement(backbone.stages).width, width, 1, shared);
    this.encoderBlocks = stack(encoder, false);
    this.queries = new Embedding(queries, width, shared);
    this.blocks = stack(decoder, true);
    this.finalNorm = new LayerNorm(width, shared);
    this.labelHead = new Linear(width, labels + 1, shared);
    this.boxHead = new DetectionHead(width, 4, shared);
  }

  /** The description that the model was built from. */
  get description(): DetrDescription {
    return this.#description;
  }

  /** @internal */
  get firstWeight(): Tensor {
    return this.projection.weight;
  }

  /**
   * Computes the scores of labels and a box for each query.
   *
   * @param pixels floats [batch, channels, height, width], from an {@link ImageProcessor}
   *
   * @throws {ShapeError} for other shapes.
   */
  override forward(pixels: Tensor): Detections {
    this.checkPixels(pixels);
    const found = tidy(() => this.queryStates(pixels));
    return { logits: this.labelHead.forward(found), boxes: sigmoid(this.boxHead.forward(found)) };
  }

  /** Returns the states of the queries after the last block: [batch, queries, width]. */
  private queryStates(pixels: Tensor): Tensor {
    const { width } = this.#description;
    const planes = this.projection.forward(this.backbone.forward(pixels));
    const dtype = planes.dtype as FloatDType;
    const positions = sinePositions(gridOfPlanes(planes), width, dtype);
    const states = this.encoderBlocks.reduce<Tensor>((x, block) => block.forward(x, positions), tokensOf(planes));
    const places = unsqueeze(this.queries.weight, 0);
    const empty: Tensor = zeros([pixels.shape[0], this.#description.queries, width], { dtype });
    const found = this.blocks.reduce<Tensor>((x, block) => block.forward(x, places, { states, positions }), empty);
    return this.finalNorm.forward(found);
  }

  private checkPixels(pixels: Tensor): void {
    pixels.checkAlive("Detr");
    const { rank, shape } = pixels;
    const { channels } = this.#description.backbone;
    if (rank === 4 && shape[1] === channels && shape[2] > 0 && shape[3] > 0) return;
    throw new ShapeError(
      "Detr",
      "wrongShape",
      `expected pixels to be [batch, ${channels}, height, width], got ${pixels.describe()}; ` +
        "an ImageProcessor converts images",
    );
  }
}
