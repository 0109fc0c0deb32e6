/** Computes only the tokens of texts, without padding, in a batch whose rows have different lengths. */
import { lastElement } from "../../../core/collections.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { embedding } from "../../../ops/embedding/embedding.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import type { Tensor } from "../../../tensor/tensor.ts";

/** The tokens of all texts, one text after the other, as one row. */
export interface Packing {
  /** The first token of each text, and the number of tokens of all texts. */
  readonly bounds: readonly number[];
  /** The position of each token in its text, int32 [1, tokens of all texts]. */
  readonly positions: Tensor<"int32">;
  /** The place of each token among the tokens of the padded batch, int32 [1, tokens of all texts]. */
  readonly places: Tensor<"int32">;
  /** The place of each token of the padded batch in the row, int32 [batch, count]; 0 for padding. */
  readonly origins: Tensor<"int32">;
}

/** Returns how texts of these lengths are packed; undefined if all have `count` tokens. */
export function packingOf(lengths: readonly number[] | undefined, count: number): Packing | undefined {
  if (!lengths?.some((length) => length < count)) return undefined;
  const bounds = [0];
  for (const length of lengths) bounds.push(lastElement(bounds) + length);
  const total = lastElement(bounds);
  const [positions, places] = [new Int32Array(total), new Int32Array(total)];
  const origins = new Int32Array(lengths.length * count);
  for (const [row, length] of lengths.entries())
    for (let at = 0; at < length; at++) {
      const [packed, padded] = [bounds[row] + at, row * count + at];
      positions[packed] = at;
      places[packed] = padded;
      origins[padded] = packed;
    }
  return {
    bounds,
    positions: tensor(positions, { shape: [1, total] }),
    places: tensor(places, { shape: [1, total] }),
    origins: tensor(origins, { shape: [lengths.length, count] }),
  };
}

/** @param x [batch, count, width] @returns [1, tokens of all texts, width] */
export const packed = (x: Tensor, { places }: Packing): Tensor => embedding(places, rowsOf(x));

/** @param x [1, tokens of all texts, width] @returns [batch, count, width]; padding has the values of some token */
export const unpacked = (x: Tensor, { origins }: Packing): Tensor => embedding(origins, rowsOf(x));

const rowsOf = (x: Tensor): Tensor => reshape(x, [-1, lastElement(x.shape)]);
