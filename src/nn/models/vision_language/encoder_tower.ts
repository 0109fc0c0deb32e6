import { ShapeError } from "../../../core/errors.ts";
import { tupleOf } from "../../../core/tuples.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { cat } from "../../../ops/join/cat.ts";
import { mean } from "../../../ops/reduction/mean.ts";
import { permute } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import { newNorm } from "../decoder/block.ts";
import { activations } from "../decoder/feed_forward.ts";
import { gridOf } from "../vision/embeddings.ts";
import { VisionEncoder } from "../vision/vision_encoder.ts";
import type { EncoderTowerDescription, ProjectorDescription } from "./description.ts";
import type { Grid } from "./grid.ts";
import type { ImageInputs } from "./images.ts";

/** Projects hidden states of patches to the language model: see {@link ProjectorDescription}. */
class ImageProjector extends Module<[states: Tensor, grid: Grid], Tensor> {
  readonly norm: Normalization | null;
  readonly hidden: Linear | null;
  readonly output: Linear;
  readonly #description: ProjectorDescription;

  /** @param width the size of hidden states */
  constructor(width: number, description: ProjectorDescription, options: LayerOptions) {
    super();
    const { gather, norm, hidden, bias, outputWidth } = description;
    const gathered = gather?.kind === "values" ? width * gather.size ** 2 : width;
    const layer = { ...options, bias };
    this.#description = description;
    this.norm = norm ? newNorm(gathered, norm, options) : null;
    this.hidden = hidden ? new Linear(gathered, hidden.width, layer) : null;
    this.output = new Linear(hidden?.width ?? gathered, outputWidth, layer);
  }

  /** @param states [batch, patches, width] @returns [batch, tokens, outputWidth] */
  override forward(states: Tensor, grid: Grid): Tensor {
    const { gather, hidden } = this.#description;
    const gathered = gather ? gatheredStates(states, grid, gather) : states;
    const normed = this.norm ? this.norm.forward(gathered) : gathered;
    return this.output.forward(hidden ? activations[hidden.activation](this.hidden!.forward(normed)) : normed);
  }
}

/** @param states [batch, rows · columns, width] @returns [batch, squares, width], or the values of size² patches */
function gatheredStates(
  states: Tensor,
  [rows, columns]: Grid,
  { kind, size }: NonNullable<ProjectorDescription["gather"]>,
): Tensor {
  const [batch, , width] = tupleOf(states.shape, 3);
  const squares = reshape(states, [batch, rows / size, size, columns / size, size, width]);
  if (kind === "mean") return reshape(mean(squares, { dim: [2, 4] }), [batch, -1, width]);
  return reshape(permute(squares, [0, 1, 3, 2, 4, 5]), [batch, -1, width * size ** 2]);
}

/**
 * An image encoder and a projector: see {@link EncoderTowerDescription}.
 *
 * | parameter | shape |
 * |---|---|
 * | `encoder. …` | see {@link VisionEncoder} |
 * | `projector.norm.weight` | [gathered width]; null without a norm |
 * | `projector.hidden.weight` | [hidden, gathered width]; null without a hidden layer |
 * | `projector.output.weight` | [outputWidth, hidden or gathered width] |
 */
export class EncoderTower extends Module<[images: readonly ImageInputs[]], Tensor> {
  readonly encoder: VisionEncoder;
  readonly projector: ImageProjector;
  readonly #description: EncoderTowerDescription;

  constructor(description: EncoderTowerDescription, options: LayerOptions = {}) {
    super();
    const shared = layerOptions(options);
    this.#description = description;
    this.encoder = new VisionEncoder(description.encoder, shared);
    this.projector = new ImageProjector(description.encoder.width, description.projector, shared);
  }

  /**
   * @param images their `pixels` are [crops, 3, height, width], all of the size of the encoder's images
   * @returns [tokens of all images, outputWidth]
   *
   * @throws {ShapeError} `wrongShape` for other sizes.
   */
  override forward(images: readonly ImageInputs[]): Tensor {
    const { skip, blocks, encoder } = this.#description;
    const { image } = encoder.patches;
    const other = images.find(
      ({ pixels }) => pixels.rank !== 4 || image.some((side, at) => pixels.shape[at + 2] !== side),
    );
    if (other)
      throw new ShapeError(
        "EncoderTower",
        "wrongShape",
        `expected images of ${image.join(" x ")} pixels, got ${other.pixels.describe()}; use the model's processor`,
      );
    const { dtype } = this.encoder.embeddings.patch.weight;
    const pixels = cat(
      images.map(({ pixels }) => toDType(pixels, dtype)),
      0,
    );
    const states = this.encoder.hiddenStates(pixels, { blocks });
    const patches = narrow(states, 1, skip, states.shape[1] - skip);
    const projected = this.projector.forward(patches, gridOf(encoder.patches, image));
    return reshape(projected, [-1, projected.shape[2]]);
  }
}
