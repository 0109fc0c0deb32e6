import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { lastElement } from "../../core/collections.ts";
import { elementCount } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { RopeAttributes } from "./primitive.ts";
import { rowsOf } from "./rows.ts";

export const ropeReference: Implementation<RopeAttributes, [Tensor, ...Tensor[]], [Tensor]> = {
  run({ inputs: [x, positions], outputs: [output], attributes }) {
    const { frequencies, magnitude, interleaved, offset } = attributes;
    const [size, pairs] = [lastElement(x.shape), frequencies.length];
    const values = toNumbers(x);
    const at = positionsOf(x, output, positions);
    const result = values.slice();
    for (const [row, position] of at.entries())
      for (const [pair, frequency] of frequencies.entries()) {
        const first = row * size + (interleaved ? 2 * pair : pair);
        const second = first + (interleaved ? 1 : pairs);
        const angle = (offset + position) * frequency;
        const [cosine, sine] = [magnitude * Math.cos(angle), magnitude * Math.sin(angle)];
        const [a, b] = [values[first], values[second]];
        result[first] = a * cosine - b * sine;
        result[second] = a * sine + b * cosine;
      }
    store(output, result);
  },
};

/** Returns the position of each row, in row-major order. */
function positionsOf(x: Tensor, output: Tensor, positions: Tensor | undefined): number[] {
  const { shape, positions: strides } = rowsOf(x, output, positions);
  const seq = lastElement(shape);
  if (!positions) return Array.from({ length: elementCount(shape) }, (_, row) => row % seq);
  const spread = new Tensor(positions.storage, positions.dtype, shape, strides, positions.offset);
  return toIntegers(spread).map(Number);
}
