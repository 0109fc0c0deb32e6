import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** The lines of tensors along an axis: how each operand runs along a line, and where the lines begin. */
export interface Lines {
  readonly length: number;
  /** From one element of a line to the next, for each operand. */
  readonly along: readonly number[];
  /** Where the first line begins in its storage, for each operand. */
  readonly offsets: readonly number[];
  /** The other axes, at least one, with each operand's strides; what is adjacent in the first operand is innermost. */
  readonly shape: readonly number[];
  readonly strides: readonly (readonly number[])[];
}

/** Lines of operands of one shape. In reverse they run from the last element to the first. */
export function linesOf(operands: readonly Tensor[], axis: number, reverse = false): Lines {
  const { shape } = operands[0]!;
  const length = shape[axis] ?? 1;
  const along = operands.map(({ strides }) => strides[axis] ?? 1);
  const order = shape.map((_, at) => at).filter((at) => at !== axis);
  const reach = (at: number) => Math.abs(operands[0]!.strides[at]!) || Number.MAX_SAFE_INTEGER;
  order.sort((a, b) => reach(b) - reach(a));
  const nest = collapse(
    order.map((at) => shape[at]!),
    operands.map(({ strides }) => order.map((at) => strides[at]!)),
  );
  const isOne = nest.shape.length === 0;
  return {
    length,
    along: reverse ? along.map((stride) => -stride) : along,
    offsets: operands.map(({ offset }, operand) => offset + (reverse ? (length - 1) * along[operand]! : 0)),
    shape: isOne ? [1] : nest.shape,
    strides: isOne ? operands.map(() => [1]) : nest.strides,
  };
}

/** The number of lines. */
export const lineCount = ({ shape }: Lines): number => shape.reduce((product, size) => product * size, 1);

/** A block of the native functions over lines: the head, offsets, length, strides along, then the other axes. */
export function writeLines(block: Float64Array, head: readonly number[], lines: Lines): void {
  const { offsets, length, along, shape, strides } = lines;
  block.set([...head, ...offsets, length, ...along, shape.length, ...shape, ...strides.flat()]);
}
