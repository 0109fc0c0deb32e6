/** Models that find the mask of an object from points and boxes, built from a {@link SamDescription}. */
import { ShapeError } from "../../../../core/errors.ts";
import { toDType } from "../../../../ops/copy/cast.ts";
import { tensor } from "../../../../ops/creation/tensor.ts";
import { add, mul } from "../../../../ops/elementwise/arithmetic.ts";
import { cos, sin } from "../../../../ops/elementwise/trigonometric.ts";
import { cat } from "../../../../ops/join/cat.ts";
import { matmul } from "../../../../ops/matmul/matmul.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { narrow } from "../../../../ops/view/slice.ts";
import { unsqueeze } from "../../../../ops/view/squeeze.ts";
import type { FloatDType } from "../../../../tensor/dtype.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { Embedding } from "../../../layers/embedding.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../../layers/initialization.ts";
import { ImageModel } from "../image_model.ts";
import type { SamDescription } from "./description.ts";
import { SamImageEncoder } from "./image_encoder.ts";
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
 * A model, such as SAM, that finds the mask of an object from points and a box. `loadModel` returns it for a folder of
 * such a model; `segmentImage` runs it.
 *
 * | parameter | shape |
 * |---|---|
 * | `encoder. …` | see {@link SamImageEncoder} |
 * | `frequencies.weight` | [2, width / 2] |
 * | `pointKinds.0.weight` to `pointKinds.3.weight` | [1, width]: points outside and inside, two corners of a box |
 * | `noPoint.weight`, `noMask.weight` | [1, width] |
 * | `decoder. …` | see {@link SamMaskDecoder} |
 *
 * Source: A. Kirillov et al., "Segment Anything", 2023.
 */
export class Sam extends ImageModel {
  readonly encoder: SamImageEncoder;
  readonly frequencies: Embedding;
  readonly pointKinds: readonly Embedding[];
  readonly noPoint: Embedding;
  readonly noMask: Embedding;
  readonly decoder: SamMaskDecoder;
  readonly #description: SamDescription;

  constructor(description: SamDescription, options: LayerOptions = {}) {
    super();
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    const { width } = description;
    this.#description = description;
    this.encoder = new SamImageEncoder(description, shared);
    this.frequencies = new Embedding(2, width / 2, shared);
    this.pointKinds = Object.keys(Kind).map(() => new Embedding(1, width, shared));
    this.noPoint = new Embedding(1, width, shared);
    this.noMask = new Embedding(1, width, shared);
    this.decoder = new SamMaskDecoder(description, shared);
  }

  /** The description that the model was built from. */
  get description(): SamDescription {
    return this.#description;
  }

  /** @internal */
  get firstWeight(): Tensor {
    return this.encoder.patch.weight;
  }

  /**
   * Computes the embeddings of images.
   *
   * @param pixels floats [batch, channels, height, width] of the model's image size, from an {@link ImageProcessor}
   * @returns [batch, width, rows, columns]
   *
   * @throws {ShapeError} for other shapes.
   */
  override forward(pixels: Tensor): Tensor {
    const { channels, image } = this.#description;
    pixels.checkAlive("Sam");
    const { rank, shape } = pixels;
    if (rank === 4 && shape[1] === channels && shape[2] === image && shape[3] === image)
      return this.encoder.forward(pixels);
    throw new ShapeError(
      "Sam",
      "wrongShape",
      `expected pixels to be [batch, ${channels}, ${image}, ${image}], got ${pixels.describe()}; an ImageProcessor ` +
        "converts images",
    );
  }

  /**
   * Computes the masks of an object.
   *
   * @param embedding the embedding of one image from {@link forward}, [1, width, rows, columns]
   * @param prompt at least one point, or a box
   * @returns the mask for unambiguous prompts, then the masks for ambiguous ones
   */
  masks(embedding: Tensor, prompt: SamPrompt): SamMasks {
    const { width, image, patch } = this.#description;
    const side = Math.floor(image / patch);
    const dtype: FloatDType = this.noMask.weight.dtype;
    const places = Array.from({ length: side ** 2 }, (_, at): ImagePoint => [at % side, Math.floor(at / side)]);
    const positions = unsqueeze(this.positionsOf(places, side), 0);
    const conditioned = add(embedding, reshape(this.noMask.weight, [1, width, 1, 1]));
    return this.decoder.forward(toDType(conditioned, dtype), positions, unsqueeze(this.tokensOf(prompt), 0));
  }

  /** Returns the embeddings of a prompt: [tokens, width]. */
  private tokensOf({ points = [], outside = [], box }: SamPrompt): Tensor {
    const corners: ImagePoint[] = box ? [box.slice(0, 2), box.slice(2)].map(([x, y]) => [x!, y!] as const) : [];
    const kinds = [
      ...points.map(() => Kind.object),
      ...outside.map(() => Kind.outside),
      ...(box ? [Kind.upperLeft, Kind.lowerRight] : []),
    ];
    const places = [...points, ...outside, ...corners];
    return tidy(() => {
      const embedded = this.positionsOf(places, this.#description.image);
      const ofKinds = cat(
        kinds.map((kind) => this.pointKinds[kind]!.weight),
        0,
      );
      const tokens = add(embedded, ofKinds);
      if (box) return tokens;
      return cat([narrow(tokens, 0, 0, places.length), this.noPoint.weight], 0); // a padding point if there is no box
    });
  }

  /**
   * Encodes positions as the sines and cosines of random frequencies: [places, width].
   *
   * @param places positions of pixels or patches; their centers are encoded
   * @param side the side of the image, in the unit of `places`
   */
  private positionsOf(places: readonly ImagePoint[], side: number): Tensor {
    const { weight } = this.frequencies;
    const centered = places.flat().map((at) => (2 * (at + 0.5)) / side - 1);
    const scaled = tensor(Float32Array.from(centered), { shape: [places.length, 2], dtype: "float32" });
    const angles = mul(matmul(toDType(scaled, weight.dtype), weight), 2 * Math.PI);
    return cat([sin(angles), cos(angles)], 1);
  }
}
