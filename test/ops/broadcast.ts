/**
 * Broadcasting, for oracles: which element of an operand an element of the result sees, and what gradients of operands
 * are sums of.
 */
import type { Shape } from "../../src/tensor/shape.ts";
import type { Block } from "./samples.ts";

/** Where in an operand's row-major values the element of the result with this number comes from. */
export function placeIn(own: Shape, shape: Shape, index: number): number {
  let rest = index;
  let place = 0;
  let stride = 1;
  for (let axis = shape.length - 1; axis >= shape.length - own.length; axis--) {
    const size = own[axis - shape.length + own.length]!;
    if (size !== 1) place += (rest % shape[axis]!) * stride;
    stride *= size;
    rest = Math.floor(rest / shape[axis]!);
  }
  return place;
}

/** An operand with its elements repeated as the result's shape asks for. */
export function repeated(block: Block, shape: Shape): Block {
  const count = shape.reduce((product, size) => product * size, 1);
  const values = Array.from({ length: count }, (_, index) => block.values[placeIn(block.shape, shape, index)]!);
  return { ...block, shape, values };
}

/** The sum of the magnitudes of those terms, in the result's shape, that belong to each element of an operand. */
export function sumMagnitudes(terms: ArrayLike<number>, own: Shape, shape: Shape): number[] {
  const sums = new Array<number>(own.reduce((product, size) => product * size, 1)).fill(0);
  for (let index = 0; index < terms.length; index++) sums[placeIn(own, shape, index)]! += Math.abs(terms[index]!);
  return sums;
}
