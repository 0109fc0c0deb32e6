import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type RopeAttributes, rowsOf } from "./problem.ts";

export const ropeCpu: Implementation<RopeAttributes> = {
  run({ operation, inputs: [x, positions], outputs: [output], attributes }) {
    const block = Float64Array.of(
      ...headOf(x!, output!, positions, attributes),
      ...nestsOf(x!, output!, positions),
      ...attributes.frequencies.map((frequency) => frequency / (2 * Math.PI)),
    );
    const { native } = cpuLibrary();
    const places = (positions ?? x!).storage.hostBytes();
    const status = native.orchard_cpu_rope(block, x!.storage.hostBytes(), places, output!.storage.hostBytes());
    check(native, status, operation);
  },
};

const headOf = (
  x: Tensor,
  output: Tensor,
  positions: Tensor | undefined,
  { interleaved, frequencies, magnitude, offset }: RopeAttributes,
): number[] => [
  ...[dtypeFacts[x.dtype].code, Number(interleaved), frequencies.length, x.shape.at(-1)!],
  ...[x.strides.at(-1)!, output.strides.at(-1)!, magnitude, offset],
  ...[Number(positions !== undefined), dtypeFacts[positions?.dtype ?? "int64"].code],
  ...[x.offset, positions?.offset ?? 0, output.offset],
];

/** The axes along which positions differ, and the others: rows along those share a table of cosines. */
function nestsOf(x: Tensor, output: Tensor, positions: Tensor | undefined): number[] {
  const { shape, ...strides } = rowsOf(x, output, positions);
  const axes = [...shape.keys()];
  const nest = (own: readonly number[], operands: readonly (readonly number[])[]): number[] => {
    const pick = (values: readonly number[]) => own.map((axis) => values[axis]!);
    const { shape: sizes, strides: merged } = collapse(pick(shape), operands.map(pick));
    return [sizes.length, ...sizes, ...merged.flat()];
  };
  return [
    ...nest(
      axes.filter((axis) => strides.positions[axis] !== 0),
      [strides.x, strides.positions, strides.out],
    ),
    ...nest(
      axes.filter((axis) => strides.positions[axis] === 0),
      [strides.x, strides.out],
    ),
  ];
}
