import type { LoopNest } from "../../tensor/shape.ts";

/** Room for the longest block: a dozen numbers, a rank, a shape and the strides of four operands of rank 8. */
const block = new Float64Array(64);

/**
 * The block of doubles of an operation on the cpu: numbers, then a nest. One is shared by all calls, which native code
 * reads at once.
 */
export function blockOf(numbers: readonly number[], { shape, strides }: LoopNest): Float64Array {
  block.set(numbers);
  let end = numbers.length;
  block[end++] = shape.length;
  for (const list of [shape, ...strides]) {
    block.set(list, end);
    end += list.length;
  }
  return block;
}
