/** Splits a grid of states into windows, joins them again, and counts the distances in a grid. */
import { tupleOf } from "../../../core/tuples.ts";
import { pad } from "../../../ops/join/pad.ts";
import { permute } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import type { Shape } from "../../../tensor/shape.ts";
import type { Tensor } from "../../../tensor/tensor.ts";

/** @internal Rounds up to a multiple of a size. */
export const upTo = (count: number, size: number): number => Math.ceil(count / size) * size;

/**
 * Pads a grid with zeros below and to the right, and splits it into windows.
 *
 * @param x [batch, rows, columns, width] @returns [batch · windows, size, size, width]
 */
export function partsOf(x: Tensor, size: number): Tensor {
  const [batch, rows, columns, width] = tupleOf(x.shape, 4);
  const [down, across] = [upTo(rows, size), upTo(columns, size)];
  const whole = pad(x, [0, 0, 0, across - columns, 0, down - rows]);
  const windows = reshape(whole, [batch, down / size, size, across / size, size, width]);
  return reshape(permute(windows, [0, 1, 3, 2, 4, 5]), [-1, size, size, width]);
}

/** Joins the windows from {@link partsOf}. @param shape the shape of the grid */
export function wholeOf(parts: Tensor, shape: Shape): Tensor {
  const [batch, rows, columns, width] = tupleOf(shape, 4);
  const size = parts.shape[1];
  const [down, across] = [upTo(rows, size), upTo(columns, size)];
  const windows = reshape(parts, [batch, down / size, across / size, size, size, width]);
  const whole = reshape(permute(windows, [0, 1, 3, 2, 4, 5]), [batch, down, across, width]);
  return narrow(narrow(whole, 1, 0, rows), 2, 0, columns);
}

/** @internal Returns the row in the table of distances for each two places of a grid, a place's row being major. */
export function distancesIn(rows: number, columns: number): Int32Array {
  const places = rows * columns;
  return Int32Array.from({ length: places * places }, (_, pair) => {
    const [from, to] = [Math.floor(pair / places), pair % places];
    const down = Math.floor(from / columns) - Math.floor(to / columns) + rows - 1;
    return down * (2 * columns - 1) + (from % columns) - (to % columns) + columns - 1;
  });
}
