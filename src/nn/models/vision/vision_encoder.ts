/** A transformer over the patches of images, built from a {@link VisionDescription}. */
import { ShapeError } from "../../../core/errors.ts";
import { aNumber } from "../../../core/kinds.ts";
import { named, operand, parameters } from "../../../core/parameters.ts";
import { tupleOf } from "../../../core/tuples.ts";
import { add } from "../../../ops/elementwise/arithmetic.ts";
import { div } from "../../../ops/elementwise/division.ts";
import { cat } from "../../../ops/join/cat.ts";
import { mean } from "../../../ops/reduction/mean.ts";
import { narrow, select } from "../../../ops/view/slice.ts";
import type { FloatDType } from "../../../tensor/dtype.ts";
import { aTensor } from "../../../tensor/kinds.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import { Embedding } from "../../layers/embedding.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import { newNorm } from "../decoder/block.ts";
import type { NormDescription } from "../decoder/description.ts";
import type { EncoderInputs } from "../encoder/attention.ts";
import { EncoderBlock } from "../encoder/block.ts";
import { centeredRotation } from "../encoder/grid_rotation.ts";
import type { EncoderLabels } from "../encoder/labels.ts";
import { placesIn } from "../loading/vision/names.ts";
import type { VisionDescription } from "./description.ts";
import { distanceBias, distanceRows } from "./distance_bias.ts";
import { gridOf, placesOf, positionsOn, tokensBefore, VisionEmbeddings } from "./embeddings.ts";
import { AttentionPooling, DensePooling } from "./pooling.ts";
import type { ImageProcessor } from "./processor/processor.ts";

/** Options of {@link VisionEncoder.hiddenStates}. */
export interface VisionStatesOptions {
  /**
   * The number of blocks to apply; a negative number counts from the end, so that −1 omits the last block. The final
   * norm is omitted with the last block. Default: all blocks and the final norm.
   */
  readonly blocks?: number | undefined;
}

const readStates = parameters("VisionEncoder.hiddenStates", {
  pixels: operand(aTensor),
  blocks: named(aNumber({ holds: Number.isSafeInteger, expected: "a whole number" })),
});

/**
 * A transformer over the patches of images, such as ViT, DINOv2, or the image encoder of CLIP. `loadModel` returns it
 * for a folder of such a model.
 *
 * | parameter | shape |
 * |---|---|
 * | `embeddings. …` | see {@link VisionEmbeddings} |
 * | `blocks.0. …` | see {@link EncoderBlock} |
 * | `midPositions.weight` | [(blocks − 1) · positions, width] of YOLOS; null for others |
 * | `distances.0.weight` | [distances on the grid + 3, heads] of BEiT, one table or one for each block |
 * | `finalNorm.weight` | [width]; null without a final norm |
 * | `pooling. …` | see {@link DensePooling} and {@link AttentionPooling}; null for other models |
 * | `projection.weight` | [projection, width]; null for other models |
 * | `head.weight` | [labels, width], or [labels, 2 · width] for the class token and the mean of patches |
 * | `distillationHead.weight` | [labels, width] of DeiT with a teacher; null for other models |
 */
export class VisionEncoder extends Module<[pixels: Tensor], Tensor> {
  readonly embeddings: VisionEmbeddings;
  readonly blocks: readonly EncoderBlock[];
  readonly midPositions: Embedding | null;
  readonly distances: readonly Embedding[];
  readonly finalNorm: Normalization | null;
  readonly pooling: DensePooling | AttentionPooling | null;
  readonly projection: Linear | QuantizedLinear | null;
  readonly head: Linear | QuantizedLinear | null;
  readonly distillationHead: Linear | QuantizedLinear | null;
  readonly #description: VisionDescription;
  #processor: ImageProcessor | undefined;
  #labels: EncoderLabels | undefined;
  /**
   * Where the weights were loaded from: `owner/name` for a model in Hugging Face's cache, else the path. Undefined for
   * a model that was not loaded.
   */
  origin: string | undefined = undefined;

  constructor(description: VisionDescription, options: LayerOptions = {}) {
    super();
    const { width, norm, layers, finalNorm, pooling, projection, head } = description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    const outputs = (size: number, of: number) => new Linear(of, size, shared);
    this.#description = description;
    this.embeddings = new VisionEmbeddings({ ...shared, ...description });
    this.blocks = layers.map((layer) => new EncoderBlock({ ...shared, width, norm, normPlace: "before", layer }));
    this.midPositions =
      description.midPositions && layers.length > 1
        ? new Embedding((layers.length - 1) * placesOf(description.patches), width, shared)
        : null;
    const tables = description.distances ? layers.slice(0, description.distances === "shared" ? 1 : undefined) : [];
    const rows = distanceRows(gridOf(description.patches, description.patches.image));
    this.distances = tables.map(({ attention }) => new Embedding(rows, attention.heads, shared));
    // InternVL's final norm is a LayerNorm even if its blocks have RMSNorms
    const lastNorm: NormDescription = norm.kind === "rmsNorm" ? { kind: "layerNorm", eps: norm.eps, bias: true } : norm;
    this.finalNorm = finalNorm === "none" ? null : newNorm(width, lastNorm, shared);
    const sizes = { ...shared, width, norm };
    this.pooling =
      pooling.kind === "dense"
        ? new DensePooling(pooling, sizes)
        : pooling.kind === "attention"
          ? new AttentionPooling(pooling, sizes)
          : null;
    this.projection = projection === undefined ? null : new Linear(width, projection, { ...shared, bias: false });
    this.head = head ? outputs(head.outputs, head.of === "firstAndPatches" ? 2 * width : width) : null;
    this.distillationHead = head?.of === "teacher" ? outputs(head.outputs, width) : null;
  }

  /** The description that the model was built from. */
  get description(): VisionDescription {
    return this.#description;
  }

  /** @internal Returns Hugging Face's names of the layers, by path in the model. */
  huggingFaceNames(): Map<string, string> {
    // without a head, names have no prefix: the last choice
    return new Map(placesIn(this).map(({ path, names }) => [path, names.at(this.head ? 0 : -1)!]));
  }

  /** @internal An image encoder has no cache. */
  get cacheElements(): number {
    return 0;
  }

  /** @internal There is no token embedding. */
  get usesWholeEmbedding(): boolean {
    return true;
  }

  /** The width of an image's vector: see {@link embedImages}. */
  get embeddingWidth(): number {
    const { width, pooling, projection } = this.#description;
    return projection ?? (pooling.kind === "dense" ? pooling.width : width);
  }

  /** Converts images to the model's input; undefined if the folder has no settings for it. */
  get processor(): ImageProcessor | undefined {
    return this.#processor;
  }

  set processor(processor: ImageProcessor | undefined) {
    this.#processor = processor;
  }

  /** The names of the head's results, and how they become probabilities; undefined without a head. */
  get labels(): EncoderLabels | undefined {
    return this.#labels;
  }

  set labels(labels: EncoderLabels | undefined) {
    this.#labels = labels;
  }

  /**
   * Computes the scores of the labels; without a head, the hidden states.
   *
   * @param pixels floats [batch, channels, height, width], from an {@link ImageProcessor}. Learned positions are
   * resized for images of a different size. Pixels after the last whole patch are not used
   * @returns [batch, labels]; without a head [batch, tokens, width]
   *
   * @throws {ShapeError} for other shapes.
   */
  override forward(pixels: Tensor): Tensor {
    const states = this.hiddenStates(pixels);
    return this.head ? tidy(() => this.classify(states)) : states;
  }

  /**
   * Computes the hidden states of the last block: class token, distillation token and registers if there are any, then
   * the patches row by row.
   *
   * @param pixels [batch, channels, height, width]
   * @returns [batch, tokens, width]
   *
   * @throws {ShapeError} as {@link forward}.
   */
  hiddenStates(pixels: Tensor, options?: VisionStatesOptions): Tensor {
    const { blocks } = readStates([pixels, options]);
    this.checkPixels(pixels);
    const { layers, finalNorm } = this.#description;
    const count = Math.min(
      layers.length,
      blocks === undefined ? layers.length : blocks < 0 ? layers.length + blocks : blocks,
    );
    return tidy(() => {
      let x = this.embeddings.forward(pixels);
      const inputsOf = this.inputsFor(pixels);
      for (const [at, block] of this.blocks.slice(0, Math.max(0, count)).entries()) {
        x = block.forward(x, inputsOf(at));
        if (this.midPositions && at < layers.length - 1) x = this.withPositions(x, at, pixels);
      }
      return finalNorm === "states" && count === layers.length ? this.finalNorm!.forward(x) : x;
    });
  }

  /**
   * @internal Computes the hidden states after several numbers of blocks, in ascending order.
   *
   * @param normalizes whether the final norm is applied to all of them
   */
  statesAfter(pixels: Tensor, counts: readonly number[], normalizes: boolean): Tensor[] {
    this.checkPixels(pixels);
    const inputsOf = this.inputsFor(pixels);
    const norm = (x: Tensor) => (normalizes && this.finalNorm ? this.finalNorm.forward(x) : x);
    let x = this.embeddings.forward(pixels);
    const found: Tensor[] = counts.includes(0) ? [norm(x)] : [];
    for (const [at, block] of this.blocks.slice(0, Math.max(...counts)).entries()) {
      x = block.forward(x, inputsOf(at));
      if (counts.includes(at + 1)) found.push(norm(x));
    }
    return found;
  }

  /**
   * Computes a vector for each image: the pooled hidden states, projected in models such as CLIP's.
   *
   * @param pixels [batch, channels, height, width]
   * @returns [batch, embeddingWidth]
   *
   * @throws {ShapeError} as {@link forward}.
   */
  embedImages(pixels: Tensor): Tensor {
    return tidy(() => {
      const { projection } = this;
      const pooled = this.pool(this.hiddenStates(pixels));
      return projection ? projection.forward(pooled) : pooled;
    });
  }

  private pool(states: Tensor): Tensor {
    const { pooling, finalNorm } = this.#description;
    const plain = () =>
      pooling.kind === "mean"
        ? mean(states, { dim: 1 })
        : pooling.kind === "patches"
          ? this.meanOfPatches(states)
          : select(states, 1, 0);
    const pooled = this.pooling ? this.pooling.forward(states) : plain();
    return finalNorm === "pooled" ? this.finalNorm!.forward(pooled) : pooled;
  }

  private meanOfPatches(states: Tensor): Tensor {
    const { all } = tokensBefore(this.#description.patches);
    return mean(narrow(states, 1, all, states.shape[1] - all), { dim: 1 });
  }

  /** Returns the inputs of each block. */
  private inputsFor(pixels: Tensor): (block: number) => EncoderInputs {
    const { patches, distances } = this.#description;
    const rotation = this.rotationFor(pixels);
    const grid = gridOf(patches, tupleOf(pixels.shape.slice(2), 2));
    const biasOf = (at: number) => distanceBias(this.distances[at].weight, gridOf(patches, patches.image), grid);
    const shared = distances === "shared" && this.distances.length > 0 ? biasOf(0) : undefined;
    return (at) => ({
      mask: undefined,
      distances: undefined,
      rotation,
      bias: distances === "each" ? biasOf(at) : shared,
    });
  }

  /** Adds the positions after a block. */
  private withPositions(x: Tensor, at: number, pixels: Tensor): Tensor {
    const { patches } = this.#description;
    const count = placesOf(patches);
    const grid = gridOf(patches, tupleOf(pixels.shape.slice(2), 2));
    const table = positionsOn(grid, narrow(this.midPositions!.weight, 0, at * count, count), patches);
    return add(x, cat([table.before, table.patches, table.after], 0));
  }

  private classify(states: Tensor): Tensor {
    const { of } = this.#description.head!;
    const head = this.head!;
    const first = () => select(states, 1, 0);
    if (of === "pooled") return head.forward(this.pool(states));
    if (of === "patches") return head.forward(this.meanOfPatches(states));
    if (of === "firstAndPatches") return head.forward(cat([first(), this.meanOfPatches(states)], 1));
    const scores = head.forward(first());
    if (of === "first") return scores;
    return div(add(scores, this.distillationHead!.forward(select(states, 1, 1))), 2);
  }

  private rotationFor(pixels: Tensor) {
    const { patches, layers } = this.#description;
    const { positions } = patches;
    if (positions.kind !== "rotary" || layers.length === 0) return undefined;
    const { headWidth } = layers[0].attention;
    const grid = gridOf(patches, tupleOf(pixels.shape.slice(2), 2));
    const dtype = this.embeddings.patch.weight.dtype as FloatDType;
    return centeredRotation(grid, { base: positions.base, headWidth, before: tokensBefore(patches).all, dtype });
  }

  private checkPixels(pixels: Tensor): void {
    pixels.checkAlive("VisionEncoder");
    const { rank, shape } = pixels;
    const { channels, size, flat } = this.#description.patches;
    const fits = (axis: 0 | 1) => shape[axis + 2] >= size[axis] && (!flat || shape[axis + 2] % size[axis] === 0);
    if (rank === 4 && shape[1] === channels && fits(0) && fits(1)) return;
    throw new ShapeError(
      "VisionEncoder",
      "wrongShape",
      `expected pixels to be [batch, ${channels}, height, width] of at least ${size.join(" x ")}` +
        `${flat ? ", and of multiples of them" : ""}, got ${pixels.describe()}; an ImageProcessor converts images`,
    );
  }
}
