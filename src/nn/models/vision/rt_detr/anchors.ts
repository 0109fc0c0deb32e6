/** The boxes from which the queries of an {@link RtDetr} model are computed. */
import type { Grid } from "../planes.ts";

/** The boxes of all places. */
export interface Anchors {
  /** log(p / (1 − p)) of the centers and sizes, as fractions of the image: 4 numbers for each place. */
  readonly logits: Float32Array;
  /** 1 for places whose centers and sizes are all between 0.01 and 0.99, else 0. */
  readonly valid: Float32Array;
}

const [LEAST, SIDE] = [0.01, 0.05];
/** The logits of places that are not valid. Their boxes are the whole image. */
const LARGEST = 3.4028234663852886e38;

/**
 * Returns a box for each place of each level, with the same center. Its sides are 0.05 of the image on the finest
 * level, and double with each coarser level.
 *
 * Source: Y. Zhao et al., "DETRs Beat YOLOs on Real-time Object Detection", 2024, and their code.
 */
export function anchorsOf(grids: readonly Grid[]): Anchors {
  const count = grids.reduce((total, [rows, columns]) => total + rows * columns, 0);
  const [logits, valid] = [new Float32Array(4 * count), new Float32Array(count)];
  let at = 0;
  for (const [level, [rows, columns]] of grids.entries())
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++, at++) {
        const side = Math.fround(SIDE * 2 ** level);
        const box = [Math.fround((column + 0.5) / columns), Math.fround((row + 0.5) / rows), side, side];
        const isValid = box.every((value) => value > Math.fround(LEAST) && value < Math.fround(1 - LEAST));
        valid[at] = Number(isValid);
        for (const [index, value] of box.entries())
          logits[4 * at + index] = isValid ? Math.log(value / Math.fround(1 - value)) : LARGEST;
      }
  return { logits, valid };
}
