import { elementCount, type Shape } from "../../tensor/shape.ts";

/**
 * Applies a formula to every slice along an axis of operands of one shape, whose elements are in row-major order.
 *
 * @param formula returns a slice's results from each operand's elements
 */
export function mapSlices<Value>(
  operands: readonly ArrayLike<Value>[],
  shape: Shape,
  axis: number,
  formula: (slices: readonly (readonly Value[])[]) => readonly Value[],
): Value[] {
  const length = shape[axis] ?? 1;
  const step = elementCount(shape.slice(axis + 1));
  const result = new Array<Value>(elementCount(shape));
  for (let first = 0; first < result.length; first++) {
    if (Math.floor(first / step) % length !== 0) continue;
    const offsets = Array.from({ length }, (_, k) => first + k * step);
    const results = formula(operands.map((operand) => offsets.map((offset) => operand[offset]!)));
    for (const [k, offset] of offsets.entries()) result[offset] = results[k]!;
  }
  return result;
}
