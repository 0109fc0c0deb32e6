/** Sines and cosines of places in an image. */
import { tensor } from "../../../../ops/creation/tensor.ts";
import type { FloatDType } from "../../../../tensor/dtype.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import type { Grid } from "../planes.ts";

/**
 * Returns the positions of a grid, row by row: [1, rows · columns, width]. The first half of the width encodes the row,
 * the second half the column. With p = 2π · place / (places + 10⁻⁶), counted from 1, elements 2i and 2i + 1 of a half
 * are sin(p / 10000^(2i / (width / 2))) and the cosine.
 *
 * Source: N. Carion et al., "End-to-End Object Detection with Transformers", 2020, appendix A.4.
 */
export function sinePositions([rows, columns]: Grid, width: number, dtype: FloatDType): Tensor {
  const half = width / 2;
  const values = new Float32Array(rows * columns * width);
  const write = (at: number, place: number, places: number) => {
    const angle = (2 * Math.PI * place) / (places + 1e-6);
    for (let index = 0; index < half; index++) {
      const scaled = angle / 10_000 ** ((2 * Math.floor(index / 2)) / half);
      values[at + index] = index % 2 === 0 ? Math.sin(scaled) : Math.cos(scaled);
    }
  };
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const at = (row * columns + column) * width;
      write(at, row + 1, rows);
      write(at + half, column + 1, columns);
    }
  return tensor(values, { shape: [1, rows * columns, width], dtype });
}

/**
 * Returns the positions of a grid, row by row: [1, rows · columns, width]. The quarters of the width are the sines and
 * cosines of the row, then those of the column: sin(place / temperature^(i / (width / 4))), counted from 0.
 *
 * Source: Y. Zhao et al., "DETRs Beat YOLOs on Real-time Object Detection", 2024, and their code.
 */
export function quarteredPositions(
  [rows, columns]: Grid,
  width: number,
  temperature: number,
  dtype: FloatDType,
): Tensor {
  const quarter = width / 4;
  const values = new Float32Array(rows * columns * width);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      for (let index = 0; index < quarter; index++) {
        const frequency = temperature ** (-index / quarter);
        const at = (row * columns + column) * width + index;
        values[at] = Math.sin(row * frequency);
        values[at + quarter] = Math.cos(row * frequency);
        values[at + 2 * quarter] = Math.sin(column * frequency);
        values[at + 3 * quarter] = Math.cos(column * frequency);
      }
  return tensor(values, { shape: [1, rows * columns, width], dtype });
}
