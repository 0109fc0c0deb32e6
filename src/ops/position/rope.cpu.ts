import type { Implementation } from "../../backend/backend.ts";
import { lastElement } from "../../core/collections.ts";
import { collapse, type LoopNest } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type RopeAttributes, ropeCall } from "./primitive.ts";
import { rowsOf } from "./rows.ts";

export const ropeCpu: Implementation<RopeAttributes, [Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs: [x, positions], outputs: [output], attributes }) {
    const { interleaved, frequencies, magnitude, offset } = attributes;
    const cycles = Float64Array.from(frequencies, (frequency) => frequency / (2 * Math.PI));
    ropeCall(
      operation,
      {
        dtype: x.dtype,
        interleaved,
        magnitude,
        offset,
        pairs: frequencies.length,
        size: lastElement(x.shape),
        stride: lastElement(x.strides),
        outStride: lastElement(output.strides),
        hasPositions: positions !== undefined,
        positionDtype: positions?.dtype ?? "int64",
        offsets: [x.offset, positions?.offset ?? 0, output.offset],
        ...nestsOf(x, output, positions),
      },
      [x, positions, cycles, output],
    );
  },
};

/**
 * Returns the loops over the axes along which positions differ, and over the others, along which rows share a table of
 * cosines.
 */
function nestsOf(x: Tensor, output: Tensor, positions: Tensor | undefined) {
  const { shape, ...strides } = rowsOf(x, output, positions);
  const axes = [...shape.keys()];
  const nest = (nestAxes: readonly number[], operands: readonly (readonly number[])[]): LoopNest => {
    const pick = (values: readonly number[]) => nestAxes.map((axis) => values[axis]);
    return collapse(pick(shape), operands.map(pick));
  };
  const isRepeated = (axis: number) => strides.positions[axis] === 0;
  return {
    distinct: nest(
      axes.filter((axis) => !isRepeated(axis)),
      [strides.x, strides.positions, strides.out],
    ),
    repeated: nest(axes.filter(isRepeated), [strides.x, strides.out]),
  };
}
