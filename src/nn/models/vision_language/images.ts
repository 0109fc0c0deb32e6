/** Images among the tokens of prompts. */
import { lastElement } from "../../../core/collections.ts";
import { ArgumentError } from "../../../core/errors.ts";
import { isArray } from "../../../core/kinds.ts";
import type { Kind } from "../../../core/parameters.ts";
import { counted } from "../../../core/plural.ts";
import { tupleOf } from "../../../core/tuples.ts";
import { isSafeInteger } from "../../../core/values.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { zeros } from "../../../ops/creation/full.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { add } from "../../../ops/elementwise/arithmetic.ts";
import { indexSelect } from "../../../ops/indexing/gather.ts";
import { cat } from "../../../ops/join/cat.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import { Tensor } from "../../../tensor/tensor.ts";
import { keep } from "../../../tensor/tidy.ts";
import type { ResidualStream } from "../decoder/residual_stream.ts";
import type { Grid } from "./grid.ts";

/** An image that a processor has prepared for a model. */
export interface ImageInputs {
  /** The normalized pixels in the form that the model's tower expects: float32 [patches, values of a patch]. */
  readonly pixels: Tensor;
  /** The number of rows and columns of patches. */
  readonly grid: Grid;
  /** The number of tokens that stand for the image. */
  readonly tokens: number;
}

/** @internal */
export const aImage: Kind<ImageInputs> = {
  expected: "an image that a processor returned",
  parse(value) {
    const { pixels, grid, tokens } = (value ?? {}) as Partial<ImageInputs>;
    const isGrid = isArray(grid) && grid.length === 2 && grid.every(isCount);
    return Tensor.isTensor(pixels) && isGrid && isCount(tokens) ? (value as ImageInputs) : undefined;
  },
};

const isCount = (value: unknown): value is number => isSafeInteger(value) && value > 0;

/** The tokens of a prompt, and the images that its image tokens stand for, in order. */
export interface ImagePrompt {
  readonly tokens: readonly number[];
  readonly images: readonly ImageInputs[];
}

/** @internal The places of images in rows of tokens. */
export interface ImagePlaces {
  /** The number of rows, and of tokens in each. */
  readonly shape: readonly [batch: number, count: number];
  /** The index of each token's image; −1 for text. */
  readonly images: Int32Array;
  /** Positions of tokens in time, by row and by column. A model without M-RoPE uses only the positions in time. */
  readonly positions: readonly [Int32Array, Int32Array, Int32Array];
  /** For each row, the position of the next token. */
  readonly next: readonly number[];
}

/** @internal How a model places images. */
export interface Placement {
  readonly imageToken: number;
  /** Rows and columns of patches that become one token; undefined for a model without M-RoPE. */
  readonly merge: number | undefined;
  /** Whether all tokens of an image must be computed together, since they attend to one another. Default false. */
  readonly whole?: boolean | undefined;
}

interface Row {
  readonly tokens: ArrayLike<number>;
  /** The position of the first token that is not padding. */
  readonly start: number;
  /** The number of padding tokens at its start. */
  readonly padding: number;
}

/**
 * @internal Finds the images of rows of equal length, and the positions of tokens. With M-RoPE, an image's tokens
 * share a position in time, and text continues after the largest of the three positions.
 *
 * Source: Hugging Face's `get_rope_index`.
 *
 * @throws {ArgumentError} `imagesDiffer` if image tokens and images do not match.
 */
export function placesOf(
  operation: string,
  rows: readonly Row[],
  images: readonly ImageInputs[],
  { imageToken, merge }: Placement,
): ImagePlaces {
  const count = rows[0].tokens.length;
  const size = rows.length * count;
  const axis = () => new Int32Array(size);
  const positions = [axis(), axis(), axis()] as const;
  const found = new Int32Array(size).fill(-1);
  let [image, rest] = [0, images[0]?.tokens ?? 0];
  const next = rows.map(({ tokens, start, padding }, row) => {
    let position = start;
    for (let at = padding; at < count; ) {
      const isImage = tokens[at] === imageToken;
      const inputs = isImage ? images[image] : undefined;
      const length = isImage ? runOf(tokens, at, rest, imageToken) : 1;
      // without M-RoPE, other tokens may separate the tokens of an image, as between SmolVLM's tiles
      if (isImage && (!inputs || (merge !== undefined && length < inputs.tokens)))
        throw imagesDiffer(operation, rows, images, imageToken);
      const columns = inputs && merge !== undefined ? inputs.grid[1] / merge : undefined;
      for (let token = 0; token < length; token++) {
        const index = row * count + at + token;
        if (inputs) found[index] = image;
        positions[0][index] = columns === undefined ? position + token : position;
        positions[1][index] = position + (columns === undefined ? token : Math.floor(token / columns));
        positions[2][index] = position + (columns === undefined ? token : token % columns);
      }
      position += inputs && merge !== undefined ? Math.max(...inputs.grid) / merge : length;
      at += length;
      if (inputs) rest -= length;
      if (inputs && rest === 0) rest = images[++image]?.tokens ?? 0;
    }
    if (rest !== (images[image]?.tokens ?? 0)) throw imagesDiffer(operation, rows, images, imageToken);
    return position;
  });
  if (image !== images.length) throw imagesDiffer(operation, rows, images, imageToken);
  return { shape: [rows.length, count], images: found, positions, next };
}

/** The length of the run of equal tokens that starts at an index, at most `most`. */
function runOf(tokens: ArrayLike<number>, from: number, most: number, token: number): number {
  let length = 1;
  while (length < most && tokens[from + length] === token) length++;
  return length;
}

function imagesDiffer(
  operation: string,
  rows: readonly Row[],
  images: readonly ImageInputs[],
  token: number,
): ArgumentError {
  const got = rows.reduce((sum, { tokens }) => sum + Array.from(tokens).filter((each) => each === token).length, 0);
  const expected = images.map(({ tokens }) => tokens).join(" + ") || "0";
  return new ArgumentError(
    operation,
    "imagesDiffer",
    `expected ${expected} image tokens (${token}) for ${counted(images.length, "image")}, got ${got} ` +
      `at other places or in parts; does the prompt come from the model's processor?`,
  );
}

/** The number of tokens of images. */
const countOf = (images: Int32Array): number => images.reduce((sum, image) => sum + (image >= 0 ? 1 : 0), 0);

/** @internal The places of images, and the features for these places. */
export interface PlacedImages extends ImagePlaces {
  /**
   * [image tokens, levels · width], in the order of the tokens: the first level replaces embeddings, and others are
   * added to the outputs of the first blocks.
   */
  readonly features: Tensor | undefined;
}

/**
 * @internal A prompt with images, which is computed in parts. The first part with an image computes the features of all
 * images.
 */
export class PlacedPrompt implements Disposable {
  private readonly places: ImagePlaces;
  private features: Tensor | undefined;

  constructor(
    private readonly prompt: ImagePrompt,
    private readonly placement: Placement,
    operation: string,
    private readonly compute: (images: readonly ImageInputs[]) => Tensor,
  ) {
    this.places = placesOf(operation, [{ tokens: prompt.tokens, start: 0, padding: 0 }], prompt.images, placement);
  }

  /** The number of tokens. */
  get length(): number {
    return this.prompt.tokens.length;
  }

  /** Whether the tokens before and at an index must be computed together. */
  isJoined(at: number): boolean {
    const { images } = this.places;
    return this.placement.whole === true && at > 0 && (images[at] ?? -1) >= 0 && images[at] === images[at - 1];
  }

  /** The tokens. Image tokens are replaced by a negative number that depends on the pixels of the image. */
  get keys(): readonly number[] {
    const hashes = this.prompt.images.map(({ pixels }) => -1 - hashOf(pixels));
    return this.prompt.tokens.map((token, at) => hashes[this.places.images[at]] ?? token);
  }

  /**
   * Returns `count` tokens from `start` on, with their places. Tokens after the prompt are text. Call it within
   * `noGrad`.
   */
  part(start: number, count: number): PlacedImages {
    const end = start + count;
    const { positions, images, next } = this.places;
    const { length } = images;
    const cut = (values: Int32Array, after: (at: number) => number) =>
      Int32Array.from({ length: count }, (_, at) => values[start + at] ?? after(start + at - length));
    const placed = cut(images, () => -1);
    const [before, within] = tupleOf([images.subarray(0, start), placed].map(countOf), 2);
    if (within > 0) this.features ??= keep(this.compute(this.prompt.images));
    const parts = tupleOf(
      positions.map((axis) => cut(axis, (at) => next[0] + at)),
      3,
    );
    return {
      shape: [1, count],
      images: placed,
      positions: parts,
      // used only after the last part, because every part states its positions
      next: [end === length ? next[0] : Math.max(...parts.map((axis) => lastElement(axis))) + 1],
      features: within > 0 ? narrow(this.features!, 0, before, within) : undefined,
    };
  }

  [Symbol.dispose](): void {
    this.features?.dispose();
    this.features = undefined;
  }
}

/** Returns the first 48 bits of a hash of the numbers of a tensor. */
function hashOf(x: Tensor): number {
  const { createHash } = require("node:crypto") as typeof import("node:crypto");
  const { buffer, byteOffset, byteLength } = x.dataSync();
  return createHash("sha256")
    .update(new Uint8Array(buffer, byteOffset, byteLength))
    .digest()
    .readUIntBE(0, 6);
}

/**
 * @internal Replaces the embeddings of image tokens by features. @param embedded [batch, count, width] @returns the
 * same shape
 */
export function withFeatures(embedded: Tensor, { features, images }: PlacedImages): Tensor {
  if (!features) return embedded;
  const width = embedded.shape[2];
  const rows = new Int32Array(images.length);
  let feature = images.length;
  for (const [at, image] of images.entries()) rows[at] = image < 0 ? at : feature++;
  const all = cat([reshape(embedded, [-1, width]), toDType(narrow(features, 1, 0, width), embedded.dtype)], 0);
  return reshape(indexSelect(all, 0, tensor(rows)), embedded.shape);
}

/** @internal Adds the features of the level after a block to its output. */
export function withDeepFeatures(
  { residual, ...stream }: ResidualStream,
  { features, images }: PlacedImages,
  block: number,
): ResidualStream {
  const width = residual.shape[2];
  if (!features || features.shape[1] < (block + 2) * width) return { residual, ...stream };
  const level = toDType(narrow(features, 1, (block + 1) * width, width), residual.dtype);
  const rows = new Int32Array(images.length);
  let feature = 1;
  for (const [at, image] of images.entries()) rows[at] = image < 0 ? 0 : feature++;
  const all = cat([zeros([1, width], { dtype: residual.dtype }), level], 0);
  return { ...stream, residual: add(residual, reshape(indexSelect(all, 0, tensor(rows)), residual.shape)) };
}
