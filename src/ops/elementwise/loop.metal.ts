import { startOf } from "../../backend/metal/launch.ts";
import { broadcastStrides, collapse, elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

const MAX_OPERANDS = 4;
const MAX_RANK = 8;
const THREADS = 256;
/** The grid is rows of so many threads: a coordinate has 32 bits, an element's number may need more. */
const ROW = 2 ** 30;

/**
 * The parameters of an elementwise kernel (`LoopNest` in `kernels/elementwise/loop.h`) and its grid: the operands are broadcast to
 * the output's shape, and axes are merged where all of them allow it.
 */
export function loopNest(output: Tensor, inputs: readonly Tensor[]) {
  const operands = [...inputs, output];
  const strides = operands.map((operand) => broadcastStrides(operand.shape, operand.strides, output.shape));
  const nest = collapse(output.shape, strides);
  const count = elementCount(output.shape);
  const words = new BigInt64Array(MAX_RANK * (1 + MAX_OPERANDS) + MAX_OPERANDS + 2);
  for (const [axis, size] of nest.shape.entries()) words[axis] = BigInt(size);
  for (const [operand, own] of nest.strides.entries())
    for (const [axis, stride] of own.entries()) words[MAX_RANK * (1 + operand) + axis] = BigInt(stride);
  const tail = MAX_RANK * (1 + MAX_OPERANDS);
  for (const [operand, tensor] of operands.entries()) words[tail + operand] = BigInt(startOf(tensor));
  words[tail + MAX_OPERANDS] = BigInt(count);
  words[tail + MAX_OPERANDS + 1] = BigInt(nest.shape.length);
  return {
    parameters: new Uint8Array(words.buffer),
    grid: [Math.min(count, ROW), Math.ceil(count / ROW)] as const,
    threadgroup: [Math.min(count, THREADS)] as const,
  };
}
