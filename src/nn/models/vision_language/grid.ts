/** The order of an image's patches, and their positions. */
import { tensor } from "../../../ops/creation/tensor.ts";
import type { RopeTables } from "../../../ops/position/tables.ts";

/** The rows and columns of an image's patches. */
export type Grid = readonly [rows: number, columns: number];

/** Patches are in the order of the tokens that they become: by blocks of `merge` rows and columns. */
export function* patchesOf([rows, columns]: Grid, merge: number): Generator<readonly [row: number, column: number]> {
  for (let top = 0; top < rows; top += merge)
    for (let left = 0; left < columns; left += merge)
      for (let row = top; row < top + merge; row++)
        for (let column = left; column < left + merge; column++) yield [row, column];
}

/**
 * Returns the tokens of an image by windows of `size` rows and columns, and the number of tokens of each window.
 *
 * Source: Hugging Face's `get_vision_window_index`.
 */
export function windowsOf(
  [rows, columns]: Grid,
  size: number,
): { readonly order: number[]; readonly counts: number[] } {
  const [order, counts]: [number[], number[]] = [[], []];
  for (let top = 0; top < rows; top += size)
    for (let left = 0; left < columns; left += size) {
      const before = order.length;
      for (let row = top; row < Math.min(rows, top + size); row++)
        for (let column = left; column < Math.min(columns, left + size); column++) order.push(row * columns + column);
      counts.push(order.length - before);
    }
  return { order, counts };
}

/**
 * Returns the rotation of each row, whose angles are position · frequency.
 *
 * @param positions the positions of a row, by axis
 * @param axes the axis of each pair
 */
export function tablesOf(
  positions: readonly ArrayLike<number>[],
  axes: readonly number[],
  frequencies: ArrayLike<number>,
  magnitude = 1,
  leading: readonly number[] = [],
): RopeTables {
  const [count, pairs] = [positions[0].length, axes.length];
  const [cos, sin] = [new Float32Array(count * pairs), new Float32Array(count * pairs)];
  for (let row = 0; row < count; row++)
    for (let pair = 0; pair < pairs; pair++) {
      const angle = positions[axes[pair]][row] * frequencies[pair];
      cos[row * pairs + pair] = magnitude * Math.cos(angle);
      sin[row * pairs + pair] = magnitude * Math.sin(angle);
    }
  const shape = [...leading, leading.length > 0 ? count / leading[0] : count, pairs];
  return { cos: tensor(cos, { shape }), sin: tensor(sin, { shape }) };
}
