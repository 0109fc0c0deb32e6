/** The parameters of the kernels in `kernels/indexing`: a loop nest (`Nest` in nest.h), then whole numbers. */
import { startOf } from "../../backend/metal/launch.ts";
import { collapse, elementCount, type LoopNest, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

const MAX_OPERANDS = 4;
const MAX_RANK = 8;
const THREADS = 256;
/** The grid is rows of so many threads: a coordinate has 32 bits, an element's number may need more. */
const ROW = 2 ** 30;

/** An operand, and the strides with which the loop goes through it. */
export interface NestOperand {
  readonly tensor: Tensor;
  readonly strides: readonly number[];
}

/** Parameters and grid of a kernel with one thread an element of a shape. Axes are merged where all operands allow it. */
export const mergedNest = (shape: Shape, operands: readonly NestOperand[], numbers: readonly number[]) =>
  parametersOf(
    collapse(
      shape,
      operands.map(({ strides }) => strides),
    ),
    operands,
    numbers,
  );

/** As {@link mergedNest}, the axes as they are, for kernels that look at them. */
export const plainNest = (shape: Shape, operands: readonly NestOperand[], numbers: readonly number[]) =>
  parametersOf({ shape: [...shape], strides: operands.map(({ strides }) => [...strides]) }, operands, numbers);

function parametersOf({ shape, strides }: LoopNest, operands: readonly NestOperand[], numbers: readonly number[]) {
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

/** The unsigned type of a dtype's size: kernels that only move elements know no other. */
export const bitsType: Readonly<Record<number, string>> = { 1: "uchar", 2: "ushort", 4: "uint", 8: "ulong" };
