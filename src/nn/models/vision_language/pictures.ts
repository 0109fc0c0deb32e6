/** Pictures among the tokens of prompts. */
import { ArgumentError } from "../../../core/errors.ts";
import { isArray } from "../../../core/kinds.ts";
import type { Kind } from "../../../core/parameters.ts";
import { counted } from "../../../core/plural.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { indexSelect } from "../../../ops/indexing/gather.ts";
import { cat } from "../../../ops/join/cat.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import { Tensor } from "../../../tensor/tensor.ts";
import { keep } from "../../../tensor/tidy.ts";
import type { Grid } from "./grid.ts";

/** A picture as a processor prepares it for a model. */
export interface PictureInputs {
  /** The normalized pixels in the form that the model's tower expects: float32 [patches, values of a patch]. */
  readonly pixels: Tensor;
  /** The number of rows and columns of patches. */
  readonly grid: Grid;
  /** The number of tokens that stand for the picture. */
  readonly tokens: number;
}

/** @internal */
export const aPicture: Kind<PictureInputs> = {
  expected: "a picture that a processor returned",
  parse(value) {
    const { pixels, grid, tokens } = (value ?? {}) as Partial<PictureInputs>;
    const isGrid = isArray(grid) && grid.length === 2 && grid.every(isCount);
    return Tensor.isTensor(pixels) && isGrid && isCount(tokens) ? (value as PictureInputs) : undefined;
  },
};

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0;

/** The tokens of a prompt, and the pictures that its picture tokens stand for, in order. */
export interface PicturePrompt {
  readonly tokens: readonly number[];
  readonly pictures: readonly PictureInputs[];
}

/** @internal The places of pictures in rows of tokens. */
export interface PicturePlaces {
  /** The number of rows, and of tokens in each. */
  readonly shape: readonly [batch: number, count: number];
  /** The index of each token's picture; −1 for text. */
  readonly pictures: Int32Array;
  /** Positions of tokens in time, by row and by column; a model without M-RoPE reads the first alone. */
  readonly positions: readonly [Int32Array, Int32Array, Int32Array];
  /** For each row, the position of the next token. */
  readonly next: readonly number[];
}

/** @internal How a model places pictures. */
export interface Placement {
  readonly pictureToken: number;
  /** Rows and columns of patches that become one token; undefined for a model without M-RoPE. */
  readonly merge: number | undefined;
}

interface Row {
  readonly tokens: ArrayLike<number>;
  /** The position of the first token that is not padding. */
  readonly start: number;
  /** The number of padding tokens at its start. */
  readonly padding: number;
}

/**
 * @internal Finds the pictures of rows of equal length, and the positions of tokens. With M-RoPE, a picture's tokens
 * share a position in time, and text continues after the largest of the three positions.
 *
 * Source: Hugging Face's `get_rope_index`.
 *
 * @throws {ArgumentError} `picturesDiffer` if picture tokens and pictures do not match.
 */
export function placesOf(
  operation: string,
  rows: readonly Row[],
  pictures: readonly PictureInputs[],
  { pictureToken, merge }: Placement,
): PicturePlaces {
  const count = rows[0]!.tokens.length;
  const size = rows.length * count;
  const axis = () => new Int32Array(size);
  const positions = [axis(), axis(), axis()] as const;
  const found = new Int32Array(size).fill(-1);
  let picture = 0;
  const next = rows.map(({ tokens, start, padding }, row) => {
    let position = start;
    for (let at = padding; at < count; ) {
      const isPicture = tokens[at] === pictureToken;
      const inputs = isPicture ? pictures[picture] : undefined;
      const length = inputs?.tokens ?? 1;
      if (isPicture && (!inputs || !isRun(tokens, at, length, pictureToken)))
        throw picturesDiffer(operation, rows, pictures, pictureToken);
      const columns = inputs && merge !== undefined ? inputs.grid[1] / merge : undefined;
      for (let token = 0; token < length; token++) {
        const index = row * count + at + token;
        if (inputs) found[index] = picture;
        positions[0][index] = columns === undefined ? position + token : position;
        positions[1][index] = position + (columns === undefined ? token : Math.floor(token / columns));
        positions[2][index] = position + (columns === undefined ? token : token % columns);
      }
      position += inputs && merge !== undefined ? Math.max(...inputs.grid) / merge : length;
      at += length;
      if (inputs) picture++;
    }
    return position;
  });
  if (picture !== pictures.length) throw picturesDiffer(operation, rows, pictures, pictureToken);
  return { shape: [rows.length, count], pictures: found, positions, next };
}

function isRun(tokens: ArrayLike<number>, from: number, length: number, token: number): boolean {
  for (let at = from; at < from + length; at++) if (tokens[at] !== token) return false;
  return true;
}

function picturesDiffer(
  operation: string,
  rows: readonly Row[],
  pictures: readonly PictureInputs[],
  token: number,
): ArgumentError {
  const got = rows.reduce((sum, { tokens }) => sum + Array.from(tokens).filter((each) => each === token).length, 0);
  const expected = pictures.map(({ tokens }) => tokens).join(" + ") || "0";
  return new ArgumentError(
    operation,
    "picturesDiffer",
    `expected ${expected} picture tokens (${token}) for ${counted(pictures.length, "picture")}, each picture's in one ` +
      `run, got ${got}; does the prompt come from the model's processor?`,
  );
}

/** The number of tokens of pictures. */
const countOf = (pictures: Int32Array): number => pictures.reduce((sum, picture) => sum + (picture >= 0 ? 1 : 0), 0);

/** @internal Places of pictures, and the features that stand at the places. */
export interface PlacedPictures extends PicturePlaces {
  /** [picture tokens, width], in the order of the tokens. */
  readonly features: Tensor | undefined;
}

/**
 * @internal A prompt with pictures, which is computed in parts. The features of all pictures are computed when the first
 * part with a picture is.
 */
export class PlacedPrompt implements Disposable {
  private readonly places: PicturePlaces;
  private features: Tensor | undefined;

  constructor(
    private readonly prompt: PicturePrompt,
    placement: Placement,
    operation: string,
    private readonly compute: (pictures: readonly PictureInputs[]) => Tensor,
  ) {
    this.places = placesOf(operation, [{ tokens: prompt.tokens, start: 0, padding: 0 }], prompt.pictures, placement);
  }

  /** Whether a picture has tokens both before and at an index. */
  isCut(at: number): boolean {
    const { pictures } = this.places;
    return at > 0 && (pictures[at] ?? -1) >= 0 && pictures[at] === pictures[at - 1];
  }

  /** The tokens, with a number below 0 for those of a picture, which depends on its pixels. */
  get keys(): readonly number[] {
    const hashes = this.prompt.pictures.map(({ pixels }) => -1 - hashOf(pixels));
    return this.prompt.tokens.map((token, at) => hashes[this.places.pictures[at]!] ?? token);
  }

  /** Returns `count` tokens from `start` on, placed; after the prompt, they are text. Call it within `noGrad`. */
  part(start: number, count: number): PlacedPictures {
    const end = start + count;
    const { positions, pictures, next } = this.places;
    const { length } = pictures;
    const cut = (values: Int32Array, after: (at: number) => number) =>
      Int32Array.from({ length: count }, (_, at) => values[start + at] ?? after(start + at - length));
    const placed = cut(pictures, () => -1);
    const [before, within] = [pictures.subarray(0, start), placed].map(countOf) as [number, number];
    if (within > 0) this.features ??= keep(this.compute(this.prompt.pictures));
    const parts = positions.map((axis) => cut(axis, (at) => next[0]! + at)) as [Int32Array, Int32Array, Int32Array];
    return {
      shape: [1, count],
      pictures: placed,
      positions: parts,
      // if the prompt continues, the next part has its positions
      next: [end === length ? next[0]! : Math.max(...parts.map((axis) => axis.at(-1)!)) + 1],
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
 * @internal Replaces the embeddings of picture tokens by features. @param embedded [batch, count, width] @returns the
 * same shape
 */
export function withFeatures(embedded: Tensor, { features, pictures }: PlacedPictures): Tensor {
  if (!features) return embedded;
  const width = embedded.shape[2]!;
  const rows = new Int32Array(pictures.length);
  let feature = pictures.length;
  for (const [at, picture] of pictures.entries()) rows[at] = picture < 0 ? at : feature++;
  const all = cat([reshape(embedded, [-1, width]), toDType(features, embedded.dtype)], 0);
  return reshape(indexSelect(all, 0, tensor(rows)), embedded.shape);
}
