/** Rotary positions of tokens on a grid: one half of the angles depends on the row, the other half on the column. */

import { lastElement } from "../../../core/collections.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { add, mul, sub } from "../../../ops/elementwise/arithmetic.ts";
import { cat } from "../../../ops/join/cat.ts";
import { narrow } from "../../../ops/view/slice.ts";
import type { FloatDType } from "../../../tensor/dtype.ts";
import type { Tensor } from "../../../tensor/tensor.ts";

/** @internal The cosines and sines of each token's angles, [tokens, headWidth / 2]. */
export interface GridRotation {
  readonly cos: Tensor;
  readonly sin: Tensor;
}

/** @internal Rotates the pairs (i, i + headWidth / 2) of x [batch, heads, tokens, headWidth]. */
export function rotateOnGrid(x: Tensor, rotation: GridRotation | undefined): Tensor {
  if (!rotation) return x;
  const half = lastElement(x.shape) / 2;
  const [first, second] = [narrow(x, -1, 0, half), narrow(x, -1, half, half)];
  const { cos, sin } = rotation;
  const turned = [sub(mul(first, cos), mul(second, sin)), add(mul(second, cos), mul(first, sin))];
  return cat(turned, -1);
}

/**
 * @internal Returns the rotation of patches, row by row, after tokens without a place, which are not rotated. The angle
 * i of a patch is 2π · c · base^(−4i / headWidth), where c is the place of its center in [−1, 1] on the vertical axis;
 * then the same on the horizontal axis.
 *
 * Source: O. Siméoni et al., "DINOv3", 2025; Hugging Face's `DINOv3ViTRopePositionEmbedding`.
 */
export function centeredRotation(
  [rows, columns]: readonly [rows: number, columns: number],
  { base, headWidth, before, dtype }: { base: number; headWidth: number; before: number; dtype: FloatDType },
): GridRotation {
  const count = headWidth / 4;
  const angles = new Float64Array((before + rows * columns) * 2 * count);
  const cycles = Array.from({ length: count }, (_, at) => (2 * Math.PI) / base ** (at / count));
  for (let patch = 0, at = before * 2 * count; patch < rows * columns; patch++) {
    const places = [(Math.floor(patch / columns) + 0.5) / rows, ((patch % columns) + 0.5) / columns];
    for (const place of places) for (const cycle of cycles) angles[at++] = (2 * place - 1) * cycle;
  }
  const shape = [before + rows * columns, 2 * count];
  const table = (values: Float64Array) => tensor(Float32Array.from(values), { shape, dtype });
  return { cos: table(angles.map(Math.cos)), sin: table(angles.map(Math.sin)) };
}
