/** Detectors of the RT-DETR family, built from an {@link RtDetrDescription}. */
import { lastElement } from "../../../../core/collections.ts";
import { ShapeError } from "../../../../core/errors.ts";
import { relu } from "../../../../ops/activation/relu.ts";
import { sigmoid } from "../../../../ops/activation/sigmoid.ts";
import { tensor } from "../../../../ops/creation/tensor.ts";
import { add, mul, sub } from "../../../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../../../ops/elementwise/clamp.ts";
import { div } from "../../../../ops/elementwise/division.ts";
import { log } from "../../../../ops/elementwise/logarithm.ts";
import { detach } from "../../../../ops/gradient/backward.ts";
import { gather } from "../../../../ops/indexing/gather.ts";
import { cat } from "../../../../ops/join/cat.ts";
import { amax } from "../../../../ops/reduction/extrema.ts";
import { topk } from "../../../../ops/sorting/sort.ts";
import { expand } from "../../../../ops/view/expand.ts";
import { unsqueeze } from "../../../../ops/view/squeeze.ts";
import type { FloatDType } from "../../../../tensor/dtype.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { LayerNorm } from "../../../layers/normalization.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import { DetectionHead, type Detections } from "../detector.ts";
import { DetrBlock } from "../detr/block.ts";
import { quarteredPositions } from "../detr/positions.ts";
import { LabelledImageModel } from "../image_model.ts";
import { gridOfPlanes, planesOf, tokensOf } from "../planes.ts";
import { NormedConvolution, ResNet } from "../resnet/resnet.ts";
import { anchorsOf } from "./anchors.ts";
import { RtDetrBlock } from "./block.ts";
import type { LevelStates } from "./deformable_attention.ts";
import type { RtDetrDescription } from "./description.ts";
import { Pyramid } from "./pyramid.ts";

/**
 * A detector of objects of the RT-DETR family. A {@link ResNet} and a {@link Pyramid} compute the states of places on
 * several levels. The places with the highest scores become queries, and each block of the decoder corrects their
 * boxes. `loadModel` returns it for a folder of such a model; `detectObjects` runs it.
 *
 * | parameter | shape |
 * |---|---|
 * | `backbone. …` | see {@link ResNet} |
 * | `projections.0. …`, `inputs.0. …` | see {@link NormedConvolution}: for each level before and after the pyramid |
 * | `encoderBlocks.0. …` | see {@link DetrBlock}: the blocks of each attended level in turn |
 * | `pyramid. …` | see {@link Pyramid} |
 * | `placeProjection.weight`, `placeNorm.weight` | [width, width], [width] |
 * | `placeLabels.weight`, `placeBoxes. …` | [labels, width], see {@link DetectionHead} |
 * | `boxPositions.0.weight`, `boxPositions.1.weight` | [2 · width, 4], [width, 2 · width] |
 * | `blocks.0. …` | see {@link RtDetrBlock} |
 * | `labelHead.weight` | [labels, width] |
 * | `boxHeads.0. …` | see {@link DetectionHead}: one for each block |
 *
 * Source: Y. Zhao et al., "DETRs Beat YOLOs on Real-time Object Detection", 2024.
 */
export class RtDetr extends LabelledImageModel<Detections> {
  readonly backbone: ResNet;
  readonly projections: readonly NormedConvolution[];
  readonly encoderBlocks: readonly DetrBlock[];
  readonly pyramid: Pyramid;
  readonly inputs: readonly NormedConvolution[];
  readonly placeProjection: Linear | QuantizedLinear;
  readonly placeNorm: LayerNorm;
  readonly placeLabels: Linear | QuantizedLinear;
  readonly placeBoxes: DetectionHead;
  readonly boxPositions: readonly (Linear | QuantizedLinear)[];
  readonly blocks: readonly RtDetrBlock[];
  readonly labelHead: Linear | QuantizedLinear;
  readonly boxHeads: readonly DetectionHead[];
  readonly #description: RtDetrDescription;

  constructor(description: RtDetrDescription, options: LayerOptions = {}) {
    super();
    const { backbone, levels, encoderWidth, encoder, attended, width, decoder, labels, eps } = description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    const narrow = (from: number, to: number) => new NormedConvolution(from, to, { ...shared, kernel: 1 });
    const sizes = { width: encoderWidth, activation: description.encoderActivation, eps };
    this.#description = description;
    this.backbone = new ResNet(backbone, shared);
    this.projections = levels.map((stage) => narrow(backbone.stages[stage - 1].width, encoderWidth));
    this.encoderBlocks = attended.flatMap(() =>
      Array.from({ length: encoder.layers }, () => new DetrBlock(sizes, encoder, { ...shared, isDecoder: false })),
    );
    this.pyramid = new Pyramid(description, shared);
    this.inputs = levels.map(() => narrow(encoderWidth, width));
    this.placeProjection = new Linear(width, width, shared);
    this.placeNorm = new LayerNorm(width, { ...shared, eps });
    this.placeLabels = new Linear(width, labels, shared);
    this.placeBoxes = new DetectionHead(width, 4, shared);
    this.boxPositions = [new Linear(4, 2 * width, shared), new Linear(2 * width, width, shared)];
    this.blocks = Array.from({ length: decoder.layers }, () => new RtDetrBlock(description, shared));
    this.labelHead = new Linear(width, labels, shared);
    this.boxHeads = this.blocks.map(() => new DetectionHead(width, 4, shared));
  }

  /** The description that the model was built from. */
  get description(): RtDetrDescription {
    return this.#description;
  }

  /** @internal */
  get firstWeight(): Tensor {
    return this.projections[0].convolution.weight;
  }

  /**
   * Computes the scores of labels, without "no object", and a box for each query.
   *
   * @param pixels floats [batch, channels, height, width], from an {@link ImageProcessor}; the sides are multiples of
   * the size of the coarsest level's places, mostly 32
   *
   * @throws {ShapeError} for other shapes.
   */
  override forward(pixels: Tensor): Detections {
    this.checkPixels(pixels);
    const memory = this.memoryOf(pixels);
    const { logits: first, states } = this.queriesOf(memory);
    let [boxes, x] = [sigmoid(first), states];
    for (const [at, block] of this.blocks.entries()) {
      const reference = detach(boxes);
      x = block.forward(x, this.positionsOf(reference), reference, memory);
      boxes = sigmoid(add(this.boxHeads[at].forward(x), inverseSigmoid(reference)));
    }
    return { logits: this.labelHead.forward(x), boxes };
  }

  /** Returns the states of the places of all levels. */
  private memoryOf(pixels: Tensor): LevelStates {
    const { levels, attended, encoder, encoderWidth, temperature } = this.#description;
    const stages = this.backbone.stagesOf(pixels);
    const planes = levels.map((stage, at) => this.projections[at].forward(stages[stage - 1]));
    for (const [at, level] of attended.entries()) {
      const grid = gridOfPlanes(planes[level]);
      const positions = quarteredPositions(grid, encoderWidth, temperature, pixels.dtype as FloatDType);
      const blocks = this.encoderBlocks.slice(at * encoder.layers, (at + 1) * encoder.layers);
      const states = blocks.reduce<Tensor>((x, block) => block.forward(x, positions), tokensOf(planes[level]));
      planes[level] = planesOf(states, grid);
    }
    const inputs = this.pyramid.forward(planes).map((level, at) => this.inputs[at].forward(level));
    return { states: cat(inputs.map(tokensOf), 1), grids: inputs.map(gridOfPlanes) };
  }

  /** Returns the boxes (before the sigmoid) and states of the places with the highest scores. */
  private queriesOf({ states, grids }: LevelStates): { readonly logits: Tensor; readonly states: Tensor } {
    const { queries } = this.#description;
    const [batch, dtype] = [states.shape[0], states.dtype];
    const anchors = anchorsOf(grids);
    const valid = tensor(anchors.valid, { shape: [1, anchors.valid.length, 1], dtype });
    const places = this.placeNorm.forward(this.placeProjection.forward(mul(states, valid)));
    const scores = amax(this.placeLabels.forward(places), { dim: -1 });
    const { indices } = topk(detach(scores), queries, { dim: 1 });
    const chosen = (x: Tensor) => gather(x, 1, expand(unsqueeze(indices, -1), [batch, queries, x.shape[2]]));
    const offsets = tensor(anchors.logits, { shape: [1, anchors.valid.length, 4], dtype });
    const logits = detach(chosen(add(this.placeBoxes.forward(places), offsets)));
    return { logits, states: detach(chosen(places)) };
  }

  private positionsOf(boxes: Tensor): Tensor {
    const [up, down] = this.boxPositions;
    return down.forward(relu(up.forward(boxes)));
  }

  private checkPixels(pixels: Tensor): void {
    pixels.checkAlive("RtDetr");
    const { backbone, levels, queries } = this.#description;
    const strides = levels.map((stage) => strideOf(backbone.stages.slice(0, stage)));
    const coarsest = lastElement(strides);
    const { rank, shape } = pixels;
    const isWhole = rank === 4 && shape[2] % coarsest === 0 && shape[3] % coarsest === 0;
    const area = rank === 4 ? shape[2] * shape[3] : 0;
    const places = strides.reduce((total, stride) => total + area / stride ** 2, 0);
    if (isWhole && shape[1] === backbone.channels && places >= queries) return;
    throw new ShapeError(
      "RtDetr",
      "wrongShape",
      `expected pixels to be [batch, ${backbone.channels}, height, width] of multiples of ${coarsest}, with at least ` +
        `${queries} places on all levels, got ${pixels.describe()}; an ImageProcessor converts images`,
    );
  }
}

/** The number of pixels between places after some stages; the stem divides sides by 4. */
const strideOf = (stages: readonly { readonly stride: number }[]): number =>
  stages.reduce((product, { stride }) => product * stride, 4);

/** Returns log(p / (1 − p)), with both at least 10⁻⁵. */
function inverseSigmoid(p: Tensor): Tensor {
  return tidy(() => log(div(clamp(p, { min: 1e-5 }), clamp(sub(1, p), { min: 1e-5 }))));
}
