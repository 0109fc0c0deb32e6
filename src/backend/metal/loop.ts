/** The parameters of kernels with one thread an element: a loop nest (`LoopNest` in `kernels/common/loop.h`), then whole numbers. */
import { broadcastStrides, collapse, elementCount, type LoopNest, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { startOf } from "./launch.ts";

const MAX_OPERANDS = 4;
const MAX_RANK = 8;
const THREADS = 256;
/** The grid is rows of so many threads: a coordinate has 32 bits, an element's number may need more. */
const ROW = 2 ** 30;

/** An operand, and the strides with which the loop goes through it. */
export interface LoopOperand {
  readonly tensor: Tensor;
  readonly strides: readonly number[];
}

/** Of an elementwise kernel: the operands are broadcast to the output's shape, and axes are merged where all of them allow it. */
export const broadcastLoop = (output: Tensor, inputs: readonly Tensor[]) =>
  mergedLoop(
    output.shape,
    [...inputs, output].map((tensor) => ({
      tensor,
      strides: broadcastStrides(tensor.shape, tensor.strides, output.shape),
    })),
  );

/** Of a loop over a shape. Axes are merged where all operands allow it. */
export const mergedLoop = (shape: Shape, operands: readonly LoopOperand[], numbers: readonly number[] = []) =>
  parametersOf(
    collapse(
      shape,
      operands.map(({ strides }) => strides),
    ),
    operands,
    numbers,
  );

/** As {@link mergedLoop}, the axes as they are, for kernels that look at them. */
export const plainLoop = (shape: Shape, operands: readonly LoopOperand[], numbers: readonly number[]) =>
  parametersOf({ shape: [...shape], strides: operands.map(({ strides }) => [...strides]) }, operands, numbers);

function parametersOf({ shape, strides }: LoopNest, operands: readonly LoopOperand[], numbers: readonly number[]) {
  const count = elementCount(shape);
  const tail = MAX_RANK * (1 + MAX_OPERANDS);
  const words = new BigInt64Array(tail + MAX_OPERANDS + 2 + numbers.length);
  const write = (values: readonly number[], start: number) => {
    for (const [at, value] of values.entries()) words[start + at] = BigInt(value);
  };
  write(shape, 0);
  for (const [operand, own] of strides.entries()) write(own, MAX_RANK * (1 + operand));
  write(
    operands.map(({ tensor }) => startOf(tensor)),
    tail,
  );
  write([count, shape.length, ...numbers], tail + MAX_OPERANDS);
  return {
    parameters: new Uint8Array(words.buffer),
    grid: [Math.min(count, ROW), Math.ceil(count / ROW)] as const,
    threadgroup: [Math.min(count, THREADS)] as const,
  };
}
