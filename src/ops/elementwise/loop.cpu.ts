import { MAX_RANK } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

const MAX_OPERANDS = 4;
const MAX_HEAD = 9;

/** The block of an elementwise call (`orchard_cpu.h`): its head, which the caller writes, and the loop. One serves all calls. */
export const block = new Float64Array(MAX_HEAD + 1 + MAX_RANK + MAX_OPERANDS * (1 + MAX_RANK));

/** Writes the loop into the block, at `head`: the operands broadcast to the output's shape. The dylib merges axes. */
export function writeLoop(head: number, output: Tensor, inputs: readonly Tensor[]): void {
  const { shape } = output;
  let next = head;
  block[next++] = shape.length;
  for (let axis = 0; axis < shape.length; axis++) block[next++] = shape[axis]!;
  for (let operand = 0; operand < inputs.length; operand++) next = writeOperand(next, inputs[operand]!, shape.length);
  writeOperand(next, output, shape.length);
}

/** An operand's offset and its strides along the loop's axes, 0 along those that it repeats. Returns where the next one goes. */
function writeOperand(at: number, { offset, shape, strides }: Tensor, rank: number): number {
  let next = at;
  block[next++] = offset;
  const lead = rank - shape.length;
  for (let axis = 0; axis < lead; axis++) block[next++] = 0;
  for (let axis = 0; axis < shape.length; axis++) block[next++] = shape[axis] === 1 ? 0 : strides[axis]!;
  return next;
}
