/** The base class of models that find the mask of an object from points and boxes. */
import { ShapeError } from "../../../../core/errors.ts";
import { toDType } from "../../../../ops/copy/cast.ts";
import { tensor } from "../../../../ops/creation/tensor.ts";
import { add, mul } from "../../../../ops/elementwise/arithmetic.ts";
import { cos, sin } from "../../../../ops/elementwise/trigonometric.ts";
import { cat } from "../../../../ops/join/cat.ts";
import { matmul } from "../../../../ops/matmul/matmul.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { unsqueeze } from "../../../../ops/view/squeeze.ts";
import type { FloatDType } from "../../../../tensor/dtype.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { Embedding } from "../../../layers/embedding.ts";
import type { LayerOptions } from "../../../layers/initialization.ts";
import { ImageModel } from "../image_model.ts";
import type { PromptedDescription } from "./description.ts";
import { SamMaskDecoder, type SamMasks } from "./mask_decoder.ts";

/** A point in an image, in pixels from the left edge and from the top edge. */
export type ImagePoint = readonly [x: number, y: number];

/** The location of an object, in pixels of the processed image. */
export interface SamPrompt {
  /** Points inside the object. */
  readonly points?: readonly ImagePoint[] | undefined;
  /** Points outside the object. */
  readonly outside?: readonly ImagePoint[] | undefined;
  /** A box around the object: its left, top, right and bottom edge. */
  readonly box?: readonly [left: number, top: number, right: number, bottom: number] | undefined;
}

/** The kinds of points, as indices into `pointKinds`. */
const Kind = { outside: 0, object: 1, upperLeft: 2, lowerRight: 3 } as const;

/**
 * The base class of {@link Sam} and {@link Sam2}: the embeddings of prompts, and the decoder of masks.
 *
 * | parameter | shape |
 * |---|---|
 * | `frequencies.weight` | [2, width / 2] |
 * | `pointKinds.0.weight` to `pointKinds.3.weight` | [1, width]: points outside and inside, two corners of a box |
 * | `noPoint.weight`, `noMask.weight` | [1, width] |
 * | `decoder. …` | see {@link SamMaskDecoder} |
 *
 * Source: A. Kirillov et al., "Segment Anything", 2023.
 */
export abstract class PromptedModel<Features> extends ImageModel<Features> {
  readonly frequencies: Embedding;
  readonly pointKinds: readonly Embedding[];
  readonly noPoint: Embedding;
  readonly noMask: Embedding;
  readonly decoder: SamMaskDecoder;

  constructor(description: PromptedDescription, options: LayerOptions) {
    super();
    const { width } = description;
    this.frequencies = new Embedding(2, width / 2, options);
    this.pointKinds = Object.keys(Kind).map(() => new Embedding(1, width, options));
    this.noPoint = new Embedding(1, width, options);
    this.noMask = new Embedding(1, width, options);
    this.decoder = new SamMaskDecoder(description, options);
  }

  /** The description that the model was built from. */
  abstract get description(): PromptedDescription;

  /**
   * Computes the masks of an object.
   *
   * @param features the features of one image from `forward`
   * @param prompt at least one point, or a box
   * @returns the mask for unambiguous prompts, then the masks for ambiguous ones
   */
  abstract masks(features: Features, prompt: SamPrompt): SamMasks;

  /** Returns the index of the mask to use for an unambiguous prompt. */
  singleMask(_masks: SamMasks): number {
    return 0;
  }

  /** @internal Whether the embedding of "no point" follows each box, as it follows points without a box. */
  abstract get padsBoxes(): boolean;

  /** @internal The frequencies that encode prompts. */
  get promptFrequencies(): Tensor {
    return this.frequencies.weight;
  }

  /** @internal Whether masks are resized to the processed image before they are resized to the original one. */
  abstract get cropsMasks(): boolean;

  /** @internal Decodes masks. @param embedding [1, width, rows, columns] @param finer finer grids of the image */
  protected decoded(embedding: Tensor, prompt: SamPrompt, finer?: readonly [Tensor, Tensor]): SamMasks {
    const { width, side } = this.description;
    const dtype: FloatDType = this.noMask.weight.dtype;
    const places = Array.from({ length: side ** 2 }, (_, at): ImagePoint => [at % side, Math.floor(at / side)]);
    const positions = unsqueeze(positionsOf(places, side, this.frequencies.weight), 0);
    const conditioned = add(embedding, reshape(this.noMask.weight, [1, width, 1, 1]));
    return this.decoder.forward(toDType(conditioned, dtype), positions, unsqueeze(this.tokensOf(prompt), 0), finer);
  }

  /** @throws {ShapeError} unless pixels are [batch, channels, image, image]. */
  protected checkPixels(name: string, pixels: Tensor): void {
    const { channels, image } = this.description;
    pixels.checkAlive(name);
    const { rank, shape } = pixels;
    if (rank === 4 && shape[1] === channels && shape[2] === image && shape[3] === image) return;
    throw new ShapeError(
      name,
      "wrongShape",
      `expected pixels to be [batch, ${channels}, ${image}, ${image}], got ${pixels.describe()}; an ImageProcessor ` +
        "converts images",
    );
  }

  /** Returns the embeddings of a prompt: [tokens, width]. */
  private tokensOf({ points = [], outside = [], box }: SamPrompt): Tensor {
    const corners: ImagePoint[] = box ? [box.slice(0, 2), box.slice(2)].map(([x, y]) => [x, y] as const) : [];
    const kinds = [
      ...points.map(() => Kind.object),
      ...outside.map(() => Kind.outside),
      ...(box ? [Kind.upperLeft, Kind.lowerRight] : []),
    ];
    const places = [...points, ...outside, ...corners];
    return tidy(() => {
      const embedded = positionsOf(places, this.description.image, this.promptFrequencies);
      const ofKinds = cat(
        kinds.map((kind) => this.pointKinds[kind].weight),
        0,
      );
      const tokens = add(embedded, ofKinds);
      return box && !this.padsBoxes ? tokens : cat([tokens, this.noPoint.weight], 0);
    });
  }
}

/**
 * Encodes positions as the sines and cosines of random frequencies: [places, width].
 *
 * @param places positions of pixels or patches; their centers are encoded
 * @param side the side of the image, in the unit of `places`
 */
function positionsOf(places: readonly ImagePoint[], side: number, frequencies: Tensor): Tensor {
  const centered = places.flat().map((at) => (2 * (at + 0.5)) / side - 1);
  const scaled = tensor(Float32Array.from(centered), { shape: [places.length, 2], dtype: "float32" });
  const angles = mul(matmul(toDType(scaled, frequencies.dtype), frequencies), 2 * Math.PI);
  return cat([sin(angles), cos(angles)], 1);
}
