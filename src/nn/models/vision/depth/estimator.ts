/** Models of the distance of each pixel, built from a {@link DepthDescription}. */
import { tupleOf } from "../../../../core/tuples.ts";
import { relu } from "../../../../ops/activation/relu.ts";
import { sigmoid } from "../../../../ops/activation/sigmoid.ts";
import { mul } from "../../../../ops/elementwise/arithmetic.ts";
import { interpolate } from "../../../../ops/picture/interpolate.ts";
import { narrow, select } from "../../../../ops/view/slice.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { Conv2d } from "../../../layers/convolution.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../../layers/initialization.ts";
import { gridOf } from "../embeddings.ts";
import { ImageModel } from "../image_model.ts";
import { type Grid, gridOfPlanes, planesOf } from "../planes.ts";
import { VisionEncoder } from "../vision_encoder.ts";
import type { DepthDescription } from "./description.ts";
import { Fusion, Reassemble } from "./neck.ts";

/**
 * A model that estimates the distance of each pixel, such as Depth Anything. `loadModel` returns it for a folder of
 * such a model; `estimateDepth` runs it.
 *
 * | parameter | shape |
 * |---|---|
 * | `vision. …` | see {@link VisionEncoder} |
 * | `levels.0. …` | see {@link Reassemble} |
 * | `fusions.0. …` | see {@link Fusion}; the coarsest level is the first |
 * | `convolution1.weight` | [fusionWidth / 2, fusionWidth, 3, 3] |
 * | `convolution2.weight` | [headWidth, fusionWidth / 2, 3, 3] |
 * | `head.weight` | [1, headWidth, 1, 1] |
 *
 * Sources: L. Yang et al., "Depth Anything", 2024; R. Ranftl et al., "Vision Transformers for Dense Prediction", 2021.
 */
export class DepthEstimator extends ImageModel {
  readonly vision: VisionEncoder;
  readonly levels: readonly Reassemble[];
  readonly fusions: readonly Fusion[];
  readonly convolution1: Conv2d;
  readonly convolution2: Conv2d;
  readonly head: Conv2d;
  readonly #description: DepthDescription;

  constructor(description: DepthDescription, options: LayerOptions = {}) {
    super();
    const { vision, levels, fusionWidth: width, headWidth } = description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    const half = Math.floor(width / 2);
    this.#description = description;
    this.vision = new VisionEncoder(vision, shared);
    this.levels = levels.map((level) => new Reassemble(vision.width, level, width, shared));
    this.fusions = levels.map((_, at) => new Fusion(width, at === 0, shared));
    this.convolution1 = new Conv2d(width, half, 3, { ...shared, padding: 1 });
    this.convolution2 = new Conv2d(half, headWidth, 3, { ...shared, padding: 1 });
    this.head = new Conv2d(headWidth, 1, 1, shared);
  }

  /** The description that the model was built from. */
  get description(): DepthDescription {
    return this.#description;
  }

  /** @internal */
  get firstWeight(): Tensor {
    return this.vision.embeddings.patch.weight as Tensor;
  }

  /** @internal Returns the height and width of the results for pixels of a size: whole patches. */
  outputSize(size: Grid): Grid {
    const { patches } = this.#description.vision;
    const [rows, columns] = gridOf(patches, size);
    return [rows * patches.size[0], columns * patches.size[1]];
  }

  /**
   * Computes depths: relative inverse distances, larger for nearer pixels; or distances in meters.
   *
   * @param pixels floats [batch, channels, height, width], from an {@link ImageProcessor}
   * @returns [batch, height, width], of whole patches
   *
   * @throws {ShapeError} for other shapes.
   */
  override forward(pixels: Tensor): Tensor {
    const { vision, levels, normalizes, depth, scale } = this.#description;
    return tidy(() => {
      const counts = levels.map(({ blocks }) => blocks);
      const size = tupleOf(pixels.shape.slice(2), 2);
      const states = this.vision.statesAfter(pixels, counts, normalizes);
      const grid = gridOf(vision.patches, size);
      const planes = states.map((state, at) =>
        this.levels[at].forward(planesOf(narrow(state, 1, 1, grid[0] * grid[1]), grid)),
      );
      const small = this.convolution1.forward(this.fused(planes));
      const whole = interpolate(small, {
        size: [...this.outputSize(size)],
        mode: "bilinear",
        alignCorners: true,
      });
      const found = this.head.forward(relu(this.convolution2.forward(whole)));
      return mul(select(depth.kind === "metric" ? sigmoid(found) : relu(found), 1, 0), scale);
    });
  }

  /** Adds the levels, from the last and coarsest to the first. */
  private fused(levels: readonly Tensor[]): Tensor {
    const reversed = levels.toReversed();
    return reversed
      .slice(1)
      .reduce(
        (sum, level, at) => this.fusions[at + 1].forward(sum, level, sizeAfter(reversed, at + 1)),
        this.fusions[0].forward(reversed[0], undefined, sizeAfter(reversed, 0)),
      );
  }
}

/** The size of the next level; for the last level, twice its own size. */
function sizeAfter(levels: readonly Tensor[], at: number): Grid {
  const next = levels[at + 1];
  if (next) return gridOfPlanes(next);
  const [rows, columns] = gridOfPlanes(levels[at]);
  return [2 * rows, 2 * columns];
}
