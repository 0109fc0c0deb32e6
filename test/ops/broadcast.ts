/**
 * Broadcasting for oracles: the element of an operand that an element of the result uses, and the terms that an
 * operand's gradient sums.
 */
import type { Shape } from "../../src/tensor/shape.ts";
import type { Block } from "./samples.ts";

/** The index, in an operand's row-major values, of the element that this element of the result uses. */
export function placeIn(own: Shape, shape: Shape, index: number): number {
  let rest = index;
  let place = 0;
  let stride = 1;
  for (let axis = shape.length - 1; axis >= shape.length - own.length; axis--) {
    const size = own[axis - shape.length + own.length];
    if (size !== 1) place += (rest % shape[axis]) * stride;
    stride *= size;
    rest = Math.floor(rest / shape[axis]);
  }
  return place;
}

/** An operand broadcast to the result's shape. */
export function repeated(block: Block, shape: Shape): Block {
  const count = shape.reduce((product, size) => product * size, 1);
  const values = Array.from({ length: count }, (_, index) => block.values[placeIn(block.shape, shape, index)]);
  return { ...block, shape, values };
}

/** For each element of an operand, the sum of the magnitudes of its terms, which are in the result's shape. */
export function sumMagnitudes(terms: ArrayLike<number>, own: Shape, shape: Shape): number[] {
  const sums = new Array<number>(own.reduce((product, size) => product * size, 1)).fill(0);
  for (let index = 0; index < terms.length; index++) sums[placeIn(own, shape, index)] += Math.abs(terms[index]);
  return sums;
}
