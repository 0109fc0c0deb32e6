/** Detectors of objects, built from a {@link DetectorDescription}. */
import { relu } from "../../../ops/activation/relu.ts";
import { sigmoid } from "../../../ops/activation/sigmoid.ts";
import { narrow } from "../../../ops/view/slice.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import type { EncoderLabels } from "../encoder/labels.ts";
import type { DetectorDescription } from "./description.ts";
import type { ImageProcessor } from "./processor/processor.ts";
import { VisionEncoder } from "./vision_encoder.ts";

/** The results of an {@link ObjectDetector}. */
export interface Detections {
  /** The scores of each label, then the score of "no object": [batch, objects, labels + 1]. */
  readonly logits: Tensor;
  /** Horizontal and vertical center, width and height, as fractions of the image: [batch, objects, 4]. */
  readonly boxes: Tensor;
}

/**
 * Computes layers.2(relu(layers.1(relu(layers.0(x))))).
 *
 * | parameter | shape |
 * |---|---|
 * | `layers.0.weight`, `layers.1.weight` | [width, width] |
 * | `layers.2.weight` | [outputs, width] |
 */
export class DetectionHead extends Module<[x: Tensor], Tensor> {
  readonly layers: readonly (Linear | QuantizedLinear)[];

  constructor(width: number, outputs: number, options: LayerOptions) {
    super();
    this.layers = [width, width, outputs].map((size) => new Linear(width, size, layerOptions(options)));
  }

  /** @param x [..., width] @returns [..., outputs] */
  override forward(x: Tensor): Tensor {
    return this.layers.reduce((sum, layer, at) => layer.forward(at === 0 ? sum : relu(sum)), x);
  }
}

/**
 * A detector of objects such as YOLOS: an image encoder with detection tokens, each of which finds one object or none.
 * `loadModel` returns it for a folder of such a model.
 *
 * | parameter | shape |
 * |---|---|
 * | `vision. …` | see {@link VisionEncoder} |
 * | `labelHead. …`, `boxHead. …` | see {@link DetectionHead} |
 *
 * Source: Y. Fang et al., "You Only Look at One Sequence", 2021.
 */
export class ObjectDetector extends Module<[pixels: Tensor], Detections> {
  readonly vision: VisionEncoder;
  readonly labelHead: DetectionHead;
  readonly boxHead: DetectionHead;
  readonly #description: DetectorDescription;
  #labels: EncoderLabels | undefined;
  /**
   * Where the weights were loaded from: `owner/name` for a model in Hugging Face's cache, else the path. Undefined for
   * a model that was not loaded.
   */
  origin: string | undefined = undefined;

  constructor(description: DetectorDescription, options: LayerOptions = {}) {
    super();
    const { vision, labels } = description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    this.#description = description;
    this.vision = new VisionEncoder(vision, shared);
    this.labelHead = new DetectionHead(vision.width, labels + 1, shared);
    this.boxHead = new DetectionHead(vision.width, 4, shared);
  }

  /** The description that the model was built from. */
  get description(): DetectorDescription {
    return this.#description;
  }

  /** @internal A detector has no cache. */
  get cacheElements(): number {
    return 0;
  }

  /** @internal There is no token embedding. */
  get usesWholeEmbedding(): boolean {
    return true;
  }

  /** Converts images to the model's input; undefined if the folder has no settings for it. */
  get processor(): ImageProcessor | undefined {
    return this.vision.processor;
  }

  set processor(processor: ImageProcessor | undefined) {
    this.vision.processor = processor;
  }

  /** The names of the labels. */
  get labels(): EncoderLabels | undefined {
    return this.#labels;
  }

  set labels(labels: EncoderLabels | undefined) {
    this.#labels = labels;
  }

  /**
   * Computes the scores of labels and a box for each detection token.
   *
   * @param pixels floats [batch, channels, height, width], from an {@link ImageProcessor}
   *
   * @throws {ShapeError} for other shapes.
   */
  override forward(pixels: Tensor): Detections {
    const states = this.vision.hiddenStates(pixels);
    const count = this.#description.vision.patches.detectionTokens!;
    const found = narrow(states, 1, states.shape[1] - count, count);
    return { logits: this.labelHead.forward(found), boxes: sigmoid(this.boxHead.forward(found)) };
  }
}
